package broker

import (
	"context"
	"errors"
	"testing"

	"varve"
)

// TestLife creates, grows, configures, deletes and recreates, and finds all of it after a restart.
func TestLife(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	b, err := Open(ctx, dir, Options{Log: varve.Options{MinFreeBytes: -1}})
	must(t, err)
	x, err := b.Create(ctx, TopicSpec{Name: "a", Partitions: 2, Config: map[string]string{"retention.ms": "1000"}})
	must(t, err)
	if _, err := b.Create(ctx, TopicSpec{Name: "a"}); !errors.Is(err, ErrTopicExists) {
		t.Fatal(err)
	}
	p, err := x.Partition(1)
	must(t, err)
	_, err = p.Log().Append(ctx, varve.Record{Value: []byte("v")})
	must(t, err)
	must(t, b.AddPartitions(ctx, "a", 3, false))
	id, err := b.ProducerID(ctx)
	must(t, err)
	_, err = b.Create(ctx, TopicSpec{Name: "b"})
	must(t, err)
	must(t, b.Delete(ctx, "b", 0))
	_, err = b.Create(ctx, TopicSpec{Name: "b"})
	must(t, err)
	must(t, b.Close(ctx))

	b, err = Open(ctx, dir, Options{Log: varve.Options{MinFreeBytes: -1}})
	must(t, err)
	defer func() { must(t, b.Close(ctx)) }()
	if n := len(b.Topics()); n != 2 {
		t.Fatalf("%d topics", n)
	}
	x, err = b.Topic("a")
	must(t, err)
	if x.Partitions() != 3 || x.Config()["retention.ms"] != "1000" {
		t.Fatalf("%d partitions, %v", x.Partitions(), x.Config())
	}
	p, err = x.Partition(1)
	must(t, err)
	if p.Err() != nil || p.Log().Committed() != 1 || p.Epoch() < 2 {
		t.Fatal(p.Err(), p.Log().Committed(), p.Epoch())
	}
	if next, err := b.ProducerID(ctx); err != nil || next <= id {
		t.Fatal(next, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
