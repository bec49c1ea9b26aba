package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"varve/broker/kafka"
)

// Topics come and go through an admin client, and say why they cannot.
func TestTopics(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	adm := kadm.NewClient(n.client())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	made, err := adm.CreateTopics(ctx, 3, 1, map[string]*string{"retention.ms": kadm.StringPtr("60000")}, "a", "b", "no/slash", "..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"a": nil, "b": nil, "no/slash": kerr.InvalidTopicException, "..": kerr.InvalidTopicException} {
		if got := made[name].Err; !errors.Is(got, want) {
			t.Errorf("create %q: got %v, want %v", name, got, want)
		}
	}
	if again, err := adm.CreateTopic(ctx, 1, 1, nil, "a"); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("create again: %+v, %v", again, err)
	}
	if r, err := adm.CreateTopic(ctx, 1, 3, nil, "c"); !errors.Is(err, kerr.InvalidReplicationFactor) {
		t.Errorf("three replicas: %+v, %v", r, err)
	}
	if r, err := adm.CreateTopic(ctx, 1, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, "c"); !errors.Is(err, kerr.InvalidConfig) {
		t.Errorf("compaction: %+v, %v", r, err)
	}
	if grown, err := adm.UpdatePartitions(ctx, 5, "a"); err != nil || grown.Error() != nil {
		t.Errorf("grow: %v, %v", err, grown)
	}
	if grown, err := adm.UpdatePartitions(ctx, 2, "a"); err != nil || !errors.Is(grown["a"].Err, kerr.InvalidPartitions) {
		t.Errorf("shrink: %v, %v", err, grown)
	}
	listed, err := adm.ListTopics(ctx)
	if err != nil || len(listed) != 2 || len(listed["a"].Partitions) != 5 || len(listed["b"].Partitions) != 3 {
		t.Errorf("list: %v, %v", listed, err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "a")
	if err != nil || len(configs) != 1 {
		t.Fatalf("configs: %v, %v", configs, err)
	}
	found := false
	for _, c := range configs[0].Configs {
		if c.Key == "retention.ms" {
			found = true
			if c.MaybeValue() != "60000" || c.Source.String() != "DYNAMIC_TOPIC_CONFIG" {
				t.Errorf("retention.ms: %+v", c)
			}
		}
	}
	if !found || len(configs[0].Configs) < 5 {
		t.Errorf("configs: %+v", configs[0].Configs)
	}
	gone, err := adm.DeleteTopics(ctx, "a", "z")
	if err != nil || gone["a"].Err != nil || !errors.Is(gone["z"].Err, kerr.UnknownTopicOrPartition) {
		t.Errorf("delete: %v, %v", gone, err)
	}
	adm = kadm.NewClient(n.client()) // one that remembers nothing
	if listed, err = adm.ListTopics(ctx); err != nil || len(listed) != 1 {
		t.Errorf("list: %v, %v", listed, err)
	}
}

// TestTopicsNamedTwice: which of two entries is meant is not known, so neither is carried out.
func TestTopicsNamedTwice(t *testing.T) {
	n := startNode(t, t.TempDir(), kafka.Options{})
	n.topic("grow", 1)
	create, grow := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewPtrCreatePartitionsRequest()
	for _, name := range []string{"a", "b", "a", "a"} {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		create.Topics = append(create.Topics, topic)
	}
	for i := range int32(2) {
		grow.Topics = append(grow.Topics, kmsg.CreatePartitionsRequestTopic{Topic: "grow", Count: 2 + i})
	}
	r := n.raw()
	var got []string
	for _, topic := range r.ask(create, 4).(*kmsg.CreateTopicsResponse).Topics {
		got = append(got, fmt.Sprint(topic.Topic, topic.ErrorCode))
	}
	for _, topic := range r.ask(grow, 1).(*kmsg.CreatePartitionsResponse).Topics {
		got = append(got, fmt.Sprint(topic.Topic, topic.ErrorCode))
	}
	if want := "[a42 b0 grow42]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if topic, err := n.broker.Topic("grow"); err != nil || topic.Partitions() != 1 {
		t.Errorf("%v", err)
	}
}
