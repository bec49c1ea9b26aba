package topics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Key is one name of a topic's configuration, as Kafka calls it.
type Key struct {
	Name string
	Type Type
	Doc  string

	// Why is set if it may have no other value than Fixed, and says why: what a log does not do is
	// refused, never taken and ignored.
	Fixed string
	Why   string

	OneOf []string // the values that it may have, the default first

	Least, Most int64 // of a number
	Unlimited   bool  // or -1
	Inherit     bool  // or -2: what the rule without "local." says
}

// Type is the type of a value, with Kafka's numbers.
type Type int8

// Types.
const (
	TypeBoolean Type = 1
	TypeString  Type = 2
	TypeInt     Type = 3
	TypeLong    Type = 5
	TypeDouble  Type = 6
	TypeList    Type = 7
)

// Names of those keys that may change.
const (
	RetentionMs         = "retention.ms"
	RetentionBytes      = "retention.bytes"
	LocalRetentionMs    = "local.retention.ms"
	LocalRetentionBytes = "local.retention.bytes"
	SegmentMs           = "segment.ms"
	SegmentBytes        = "segment.bytes"
	MaxMessageBytes     = "max.message.bytes"
	TimestampType       = "message.timestamp.type"
	RemoteStorageEnable = "remote.storage.enable" // says whether the node has a cold tier
)

// Values of TimestampType: whose clock a record's time is from.
const (
	CreateTime    = "CreateTime"    // the producer's
	LogAppendTime = "LogAppendTime" // the node's
)

const (
	longMax   = "9223372036854775807"
	verbatim  = "batches are stored and handed out as they came"
	noCompact = "records are removed by age and size, never by key"
	onePolicy = "when an append is durable is the node's policy, the same for all topics"
)

// keys is the table of configuration, sorted by name.
var keys = []Key{
	{Name: "cleanup.policy", Type: TypeList, Fixed: "delete", Why: noCompact, Doc: "what happens to old records"},
	{Name: "compression.type", Type: TypeString, Fixed: "producer", Why: verbatim, Doc: "compression of what is stored"},
	{Name: "delete.retention.ms", Type: TypeLong, Fixed: "86400000", Why: noCompact, Doc: "of compaction"},
	{Name: "file.delete.delay.ms", Type: TypeLong, Fixed: "60000", Why: "files go as soon as nobody reads them", Doc: "how long a removed file stays"},
	{Name: "flush.messages", Type: TypeLong, Fixed: longMax, Why: onePolicy, Doc: "records between syncs"},
	{Name: "flush.ms", Type: TypeLong, Fixed: longMax, Why: onePolicy, Doc: "time between syncs"},
	{Name: "follower.replication.throttled.replicas", Type: TypeList, Why: "a node has no followers", Doc: "of replication"},
	{Name: "index.interval.bytes", Type: TypeInt, Fixed: "4096", Why: "it is the node's", Doc: "bytes for each entry of an index"},
	{Name: "leader.replication.throttled.replicas", Type: TypeList, Why: "a node has no followers", Doc: "of replication"},
	{Name: LocalRetentionBytes, Type: TypeLong, Least: 1, Most: math.MaxInt64, Unlimited: true, Inherit: true, Doc: "bytes of a partition that stay on local disk at least, of what the cold tier holds"},
	{Name: LocalRetentionMs, Type: TypeLong, Least: 1, Most: math.MaxInt64, Unlimited: true, Inherit: true, Doc: "age at which records leave the local disk, of what the cold tier holds"},
	{Name: "max.compaction.lag.ms", Type: TypeLong, Fixed: longMax, Why: noCompact, Doc: "of compaction"},
	{Name: MaxMessageBytes, Type: TypeInt, Least: 1, Most: 1 << 30, Doc: "bytes of one batch"},
	{Name: "message.timestamp.after.max.ms", Type: TypeLong, Fixed: longMax, Why: "every time is taken", Doc: "how far a record's time may be ahead"},
	{Name: "message.timestamp.before.max.ms", Type: TypeLong, Fixed: longMax, Why: "every time is taken", Doc: "how far a record's time may be behind"},
	{Name: TimestampType, Type: TypeString, OneOf: []string{CreateTime, LogAppendTime}, Doc: "whose clock a record's time is from"},
	{Name: "min.cleanable.dirty.ratio", Type: TypeDouble, Fixed: "0.5", Why: noCompact, Doc: "of compaction"},
	{Name: "min.compaction.lag.ms", Type: TypeLong, Fixed: "0", Why: noCompact, Doc: "of compaction"},
	{Name: "min.insync.replicas", Type: TypeInt, Fixed: "1", Why: "a partition is on one node; what an ack waits for is the node's policy", Doc: "replicas that an ack waits for"},
	{Name: "preallocate", Type: TypeBoolean, Fixed: "false", Why: "it is the node's", Doc: "whether files are filled ahead"},
	{Name: RemoteStorageEnable, Type: TypeBoolean, Doc: "whether sealed segments go to the cold tier"},
	{Name: RetentionBytes, Type: TypeLong, Least: 1, Most: math.MaxInt64, Unlimited: true, Doc: "bytes of a partition that stay at least"},
	{Name: RetentionMs, Type: TypeLong, Least: 1, Most: math.MaxInt64, Unlimited: true, Doc: "age at which records go"},
	{Name: SegmentBytes, Type: TypeInt, Least: 1024, Most: math.MaxInt32, Doc: "bytes at which a segment is sealed"},
	{Name: "segment.index.bytes", Type: TypeInt, Fixed: "10485760", Why: "an index is as large as its segment needs", Doc: "bytes of an index"},
	{Name: "segment.jitter.ms", Type: TypeLong, Fixed: "0", Why: "segments are sealed at their age", Doc: "spread of segment.ms"},
	{Name: SegmentMs, Type: TypeLong, Least: 1, Most: math.MaxInt64, Doc: "age at which a segment is sealed"},
	{Name: "unclean.leader.election.enable", Type: TypeBoolean, Fixed: "false", Why: "a partition is on one node", Doc: "whether records may be lost to go on"},
}

// Keys appends the table of configuration to dst, sorted by name.
func Keys(dst []Key) []Key { return append(dst, keys...) }

// FindKey returns a key by name.
func FindKey(name string) (Key, bool) {
	i, ok := slices.BinarySearchFunc(keys, name, func(k Key, name string) int { return strings.Compare(k.Name, name) })
	if !ok {
		return Key{}, false
	}
	return keys[i], true
}

// ConfigError says which value of a topic's configuration cannot be, and why.
type ConfigError struct {
	Name  string
	Value string
	Want  string
}

func (e *ConfigError) Error() string {
	if e.Name == "" {
		return "topics: config: " + e.Want
	}
	if e.Value == "" {
		return fmt.Sprintf("topics: config %q: %s", short(e.Name), e.Want)
	}
	return fmt.Sprintf("topics: config %s = %q: want %s", short(e.Name), short(e.Value), e.Want)
}

func short(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}

// CheckConfig checks a topic's own values, sorted by name. tiered says whether the node has a cold tier.
func CheckConfig(config []Pair, tiered bool) error {
	for i, p := range config {
		k, ok := FindKey(p.Name)
		switch {
		case !ok:
			return &ConfigError{Name: p.Name, Want: "no topic has this setting here"}
		case i > 0 && config[i-1].Name >= p.Name:
			return &ConfigError{Name: p.Name, Want: "is given twice"}
		case k.Name == RemoteStorageEnable:
			if p.Value != strconv.FormatBool(tiered) {
				return &ConfigError{p.Name, p.Value, fmt.Sprintf("%t: it is the node's, the same for all topics", tiered)}
			}
		case k.Why != "":
			if p.Value != k.Fixed {
				return &ConfigError{p.Name, p.Value, fmt.Sprintf("%q: %s", k.Fixed, k.Why)}
			}
		default:
			if err := k.check(p.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// check says whether the key may have a value: one of its list, or a number.
func (k *Key) check(value string) error {
	if k.OneOf != nil {
		if slices.Contains(k.OneOf, value) {
			return nil
		}
		return &ConfigError{k.Name, value, strings.Join(k.OneOf, " or ")}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	ok := err == nil && strconv.FormatInt(n, 10) == value
	if ok && (k.Least <= n && n <= k.Most || k.Unlimited && n == -1 || k.Inherit && n == -2) {
		return nil
	}
	want := fmt.Sprintf("a number from %d to %d", k.Least, k.Most)
	if k.Unlimited {
		want += ", or -1 for no limit"
	}
	return &ConfigError{k.Name, value, want}
}

// Number returns the value that a topic sets, and whether it sets one.
func Number(config []Pair, name string) (int64, bool) {
	for _, p := range config {
		if p.Name == name {
			n, err := strconv.ParseInt(p.Value, 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
