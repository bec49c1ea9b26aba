package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// nodeFlags say which node is asked, for whatever speaks Kafka's protocol.
type nodeFlags struct {
	Bootstrap []string      `default:"127.0.0.1:9092" placeholder:"HOST:PORT" help:"The node to ask."`
	Timeout   time.Duration `default:"30s" placeholder:"T" help:"How long to wait for it."`
}

// Validate checks the flags.
func (f *nodeFlags) Validate() error {
	for _, b := range f.Bootstrap {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || !validPort(port) {
			return fmt.Errorf("--bootstrap %q: want host:port", b)
		}
	}
	if len(f.Bootstrap) == 0 {
		return errors.New("--bootstrap is empty: want host:port")
	}
	if f.Timeout <= 0 {
		return fmt.Errorf("--timeout %v: want above 0s", f.Timeout)
	}
	return nil
}

// ask connects to the node and does something with it.
func (f *nodeFlags) ask(ctx context.Context, do func(context.Context, *kadm.Client) error) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(f.Bootstrap...), kgo.RetryTimeout(f.Timeout), kgo.RequestRetries(1))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	err = do(ctx, kadm.NewClient(c))
	if network := (*net.OpError)(nil); errors.As(err, &network) && network.Op == "dial" {
		return fmt.Errorf("%s: %w; is varve serve running there? --bootstrap names another node", network.Addr, network.Err)
	}
	return err
}

// topicError is what the node answered about a topic.
func topicError(topic string, err error, message string) error {
	if err == nil {
		return nil
	}
	var code *kerr.Error
	if errors.As(err, &code) && (message == "" || message == code.Message) {
		message = code.Description
	}
	if message == "" {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	if code != nil {
		return fmt.Errorf("topic %s: %s (%s)", topic, message, code.Message)
	}
	return fmt.Errorf("topic %s: %s", topic, message)
}

type topicCreateCommand struct {
	Topics       []string          `arg:"" name:"topic" help:"Names of the topics."`
	Partitions   *int32            `placeholder:"N" help:"Partitions of each; default: what the node has for it."`
	Config       map[string]string `placeholder:"K=V" help:"Configuration, such as retention.ms=86400000; may be given again."`
	ValidateOnly bool              `help:"Say whether it could be created, and create nothing."`

	nodeFlags
}

// Validate checks the flags.
func (c *topicCreateCommand) Validate() error {
	if c.Partitions != nil && *c.Partitions < 1 {
		return fmt.Errorf("--partitions %d: want 1 or more; without it, as many as the node has for a new topic", *c.Partitions)
	}
	return c.nodeFlags.Validate()
}

// Run creates topics.
func (c *topicCreateCommand) Run(ctx context.Context, s *streams) error {
	return c.ask(ctx, func(ctx context.Context, node *kadm.Client) error {
		config := make(map[string]*string)
		for k, v := range c.Config {
			config[k] = &v
		}
		partitions, create := int32(-1), node.CreateTopics
		if c.Partitions != nil {
			partitions = *c.Partitions
		}
		if c.ValidateOnly {
			create = node.ValidateCreateTopics
		}
		answers, err := create(ctx, partitions, -1, config, c.Topics...)
		if err != nil {
			return err
		}
		for _, name := range c.Topics {
			a := answers[name]
			if failed := topicError(name, a.Err, a.ErrMessage); failed != nil {
				err = errors.Join(err, failed)
			} else if !c.ValidateOnly {
				fmt.Fprintf(s.out, "created %s, %s\n", name, count(int(a.NumPartitions), "partition"))
			}
		}
		return err
	})
}

type topicDeleteCommand struct {
	Topics []string `arg:"" name:"topic" help:"Names of the topics. All that they hold is gone for good."`

	nodeFlags
}

// Run deletes topics.
func (c *topicDeleteCommand) Run(ctx context.Context, s *streams) error {
	return c.ask(ctx, func(ctx context.Context, node *kadm.Client) error {
		answers, err := node.DeleteTopics(ctx, c.Topics...)
		if err != nil {
			return err
		}
		for _, name := range c.Topics {
			a := answers[name]
			if failed := topicError(name, a.Err, a.ErrMessage); failed != nil {
				err = errors.Join(err, failed)
			} else {
				fmt.Fprintf(s.out, "deleted %s\n", name)
			}
		}
		return err
	})
}

// topicView is what is printed of a topic.
type topicView struct {
	Name       string          `json:"name"`
	ID         string          `json:"id,omitempty"`
	Records    int64           `json:"records"`
	Partitions []partitionView `json:"partitions"`
	Config     []configView    `json:"config,omitempty"`
}

// partitionView is what is printed of a partition; a number that is not known is -1.
type partitionView struct {
	Partition int32  `json:"partition"`
	Epoch     int32  `json:"epoch"`
	Start     int64  `json:"start"`
	End       int64  `json:"end"`
	Error     string `json:"error,omitempty"`
}

// configView is one entry of a topic's configuration.
type configView struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// topicViews asks the node about topics, all of them if none is named. The error is about those that are not there,
// or not whole; what came is there beside it.
func topicViews(ctx context.Context, node *kadm.Client, names ...string) (all []topicView, failed error) {
	details, err := node.ListTopics(ctx, names...)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, d := range details.Sorted() {
		if d.Err != nil {
			failed = errors.Join(failed, topicError(d.Topic, d.Err, ""))
			continue
		}
		found = append(found, d.Topic)
	}
	if len(found) == 0 {
		return nil, failed
	}
	starts, err := node.ListStartOffsets(ctx, found...)
	ends, endErr := node.ListEndOffsets(ctx, found...)
	missing := errors.Join(err, endErr)
	if shards := (*kadm.ShardErrors)(nil); missing != nil && !errors.As(missing, &shards) {
		return nil, missing
	}
	var offline []string
	partitions := 0
	for _, name := range found {
		v := topicOf(name, details[name], starts, ends, missing)
		for _, p := range v.Partitions {
			if partitions++; p.Error != "" {
				offline = append(offline, fmt.Sprintf("%s/%d", name, p.Partition))
			}
		}
		all = append(all, v)
	}
	if n := len(offline); n > 0 {
		text := strings.Join(offline[:min(n, offlineNames)], " ")
		if n > offlineNames {
			text += " ..."
		}
		failed = errors.Join(failed, fmt.Errorf("%d of %s are not served: %s; varve serve says why on stderr", n, count(partitions, "partition"), text))
	}
	return all, failed
}

// offlineNames is how many partitions that are offline a message names.
const offlineNames = 8

// topicOf puts together what the node answered about a topic; missing is why it did not about a partition.
func topicOf(name string, d kadm.TopicDetail, starts, ends kadm.ListedOffsets, missing error) topicView {
	v := topicView{Name: name, Partitions: []partitionView{}}
	if d.ID != (kadm.TopicID{}) {
		v.ID = d.ID.String()
	}
	for _, p := range d.Partitions.Sorted() {
		x := partitionView{Partition: p.Partition, Epoch: p.LeaderEpoch, Start: -1, End: -1}
		start, known := starts.Lookup(name, p.Partition)
		end, both := ends.Lookup(name, p.Partition)
		err := cmp.Or(p.Err, start.Err, end.Err)
		switch {
		case errors.Is(err, kerr.LeaderNotAvailable), errors.Is(err, kerr.KafkaStorageError):
			x.Error = "offline"
		case err != nil:
			x.Error = oneLine(err)
		case known && both:
			x.Start, x.End = start.Offset, end.Offset
			v.Records += x.End - x.Start
		default:
			x.Error = oneLine(cmp.Or(missing, errNoAnswer))
		}
		v.Partitions = append(v.Partitions, x)
	}
	return v
}

var errNoAnswer = errors.New("the node did not answer about it")

type topicListCommand struct {
	JSON bool `name:"json" help:"Print JSON."`

	nodeFlags
}

// Run lists topics.
func (c *topicListCommand) Run(ctx context.Context, s *streams) error {
	return c.ask(ctx, func(ctx context.Context, node *kadm.Client) error {
		all, failed := topicViews(ctx, node)
		if all == nil && failed != nil {
			return failed
		}
		if c.JSON {
			return errors.Join(printJSON(s, append([]topicView{}, all...)), failed) // [] where there is none
		}
		w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "TOPIC\tPARTITIONS\tRECORDS")
		for _, t := range all {
			partitions, offline := strconv.Itoa(len(t.Partitions)), 0
			for _, p := range t.Partitions {
				if p.Error != "" {
					offline++
				}
			}
			if offline > 0 {
				partitions += fmt.Sprintf(" (%d offline)", offline)
			}
			fmt.Fprintf(w, "%s\t%s\t%d\n", t.Name, partitions, t.Records)
		}
		return errors.Join(w.Flush(), failed)
	})
}

type topicDescribeCommand struct {
	Topics []string `arg:"" name:"topic" help:"Names of the topics."`
	JSON   bool     `name:"json" help:"Print JSON."`

	nodeFlags
}

// Run describes topics.
func (c *topicDescribeCommand) Run(ctx context.Context, s *streams) error {
	return c.ask(ctx, func(ctx context.Context, node *kadm.Client) error {
		all, failed := topicViews(ctx, node, c.Topics...)
		if len(all) == 0 {
			return failed
		}
		var names []string
		for i := range all {
			names = append(names, all[i].Name)
		}
		configs, err := node.DescribeTopicConfigs(ctx, names...)
		failed = errors.Join(failed, err)
		for i := range all {
			answer, err := configs.On(all[i].Name, nil)
			if err == nil {
				err = topicError(all[i].Name, answer.Err, answer.ErrMessage)
			}
			failed = errors.Join(failed, err)
			all[i].Config = configViews(answer.Configs)
		}
		if c.JSON {
			return errors.Join(printJSON(s, all), failed)
		}
		for i := range all {
			all[i].print(s)
		}
		return failed
	})
}

// configViews returns a configuration in the order of its keys.
func configViews(configs []kadm.Config) []configView {
	byKey := make(map[string]configView)
	for _, c := range configs {
		source := "default"
		switch c.Source {
		case kmsg.ConfigSourceDynamicTopicConfig:
			source = "topic"
		case kmsg.ConfigSourceStaticBrokerConfig, kmsg.ConfigSourceDynamicBrokerConfig, kmsg.ConfigSourceDynamicDefaultBrokerConfig:
			source = "node"
		}
		byKey[c.Key] = configView{c.Key, c.MaybeValue(), source}
	}
	var all []configView
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, byKey[key])
	}
	return all
}

func (t *topicView) print(s *streams) {
	fmt.Fprintf(s.out, "%s  %s, %d records", t.Name, count(len(t.Partitions), "partition"), t.Records)
	if t.ID != "" {
		fmt.Fprintf(s.out, ", id %s", t.ID)
	}
	fmt.Fprintln(s.out)
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  PARTITION\tEPOCH\tSTART\tEND")
	for _, p := range t.Partitions {
		if p.Error != "" {
			fmt.Fprintf(w, "  %d\t-\t-\t-\t%s\n", p.Partition, p.Error)
			continue
		}
		fmt.Fprintf(w, "  %d\t%d\t%d\t%d\n", p.Partition, p.Epoch, p.Start, p.End)
	}
	_ = w.Flush() // into memory
	w.Init(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  CONFIG\tVALUE\tFROM")
	for _, c := range t.Config {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", c.Key, c.Value, c.Source)
	}
	_ = w.Flush()
}

func printJSON(s *streams, v any) error {
	e := json.NewEncoder(s.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
