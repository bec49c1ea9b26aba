// Package clients is tests alone: real clients against a varve serve in a process of its own.
package clients

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"varve/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// number returns how many of something a test makes, which a variable of the environment may set.
func number(t *testing.T, env string, byDefault int) int {
	t.Helper()
	s := os.Getenv(env)
	if s == "" {
		return byDefault
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number above 0", env, s)
	}
	return n
}

// client connects to a node; it tries again soon, as nodes are killed here.
func client(t testing.TB, n *brokertest.Node, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(n.Addr), kgo.MetadataMinAge(10 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 5 * time.Millisecond }),
		kgo.RequestTimeoutOverhead(5 * time.Second),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// create creates a topic.
func create(ctx context.Context, t testing.TB, n *brokertest.Node, topic string, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(client(t, n)).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}
