package broker

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"varve"
	"varve/core/topics"
)

// ConfigEntry is one line of a topic's configuration, as Kafka describes it.
type ConfigEntry struct {
	Name     string
	Value    string
	Default  string // what the node gives where the topic sets nothing
	Set      bool   // the topic sets it
	ReadOnly bool   // it can have no other value
	Type     int8   // Kafka's number
	Doc      string
}

// ConfigEntries returns the whole configuration of a topic, sorted by name.
func (b *Broker) ConfigEntries(t *Topic) []ConfigEntry {
	own := *t.config.Load()
	var all []ConfigEntry
	for _, k := range topics.Keys(nil) {
		e := ConfigEntry{Name: k.Name, Default: b.defaultOf(&k), ReadOnly: k.Why != "", Type: int8(k.Type), Doc: k.Doc}
		if e.Value, e.Set = own[k.Name]; !e.Set {
			e.Value = e.Default
		}
		all = append(all, e)
	}
	return all
}

// defaultOf returns what a topic has that sets nothing.
func (b *Broker) defaultOf(k *topics.Key) string {
	o := &b.options.Log
	switch k.Name {
	case topics.RetentionMs:
		return millis(o.RetentionAge, varve.Unlimited)
	case topics.RetentionBytes:
		return bytesOr(o.RetentionBytes, varve.Unlimited)
	case topics.LocalRetentionMs:
		return millis(o.LocalRetentionAge, -2)
	case topics.LocalRetentionBytes:
		return bytesOr(o.LocalRetentionBytes, -2)
	case topics.SegmentMs:
		if o.SegmentAge == varve.Unlimited {
			return strconv.FormatInt(math.MaxInt64, 10)
		}
		return millis(o.SegmentAge, 24*3600*1000)
	case topics.SegmentBytes:
		return bytesOr(min(o.SegmentBytes, math.MaxInt32), 256<<20)
	case topics.MaxMessageBytes:
		return bytesOr(o.MaxBatchBytes, 16<<20)
	case topics.RemoteStorageEnable:
		return strconv.FormatBool(b.tiered)
	}
	if k.OneOf != nil {
		return k.OneOf[0]
	}
	return k.Fixed
}

func millis(d time.Duration, zero int64) string {
	switch {
	case d == 0:
		return strconv.FormatInt(zero, 10)
	case d == varve.Unlimited:
		return "-1"
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

func bytesOr(n, zero int64) string {
	if n == 0 {
		n = zero
	}
	return strconv.FormatInt(n, 10)
}

// preallocateBytes is the least step of zeros ahead of a partition's tail. Most partitions of a node with many have
// little traffic, and the zeros of one keep the syncs of all others waiting; where there is more, steps are longer.
const preallocateBytes = 64 << 10

// logOptions returns the options of a partition's log.
func (b *Broker) logOptions(d topics.Dir, config []topics.Pair) varve.Options {
	o := b.options.Log
	o.Logger, o.Budget = b.logger, b.budget
	o.PreallocateBytes = cmp.Or(o.PreallocateBytes, preallocateBytes)
	o.Create, o.Cold, o.ColdPrefix, o.Warm = false, nil, "", varve.WarmOptions{}
	if b.options.Tiers != nil {
		o.Cold, o.ColdPrefix, o.Warm = b.options.Tiers(d.Topic, d.Incarnation, d.Partition)
	}
	size := func(to *int64, name string) {
		if n, ok := topics.Number(config, name); ok {
			*to = n
		}
	}
	age := func(to *time.Duration, name string) {
		if n, ok := topics.Number(config, name); ok {
			*to = duration(n)
		}
	}
	size(&o.RetentionBytes, topics.RetentionBytes)
	age(&o.RetentionAge, topics.RetentionMs)
	age(&o.SegmentAge, topics.SegmentMs)
	size(&o.SegmentBytes, topics.SegmentBytes)
	size(&o.MaxBatchBytes, topics.MaxMessageBytes)
	if o.PendingBytes != 0 { // of the node: Budget
		o.PendingBytes = max(o.PendingBytes, o.MaxBatchBytes)
	}
	if o.Cold == nil { // without one, local retention would be retention
		o.LocalRetentionBytes, o.LocalRetentionAge = 0, 0
		return o
	}
	size(&o.LocalRetentionBytes, topics.LocalRetentionBytes)
	age(&o.LocalRetentionAge, topics.LocalRetentionMs)
	o.LocalRetentionBytes = max(o.LocalRetentionBytes, varve.Unlimited) // -2: as retention says, which rules anyway
	return o
}

// duration returns so many milliseconds; what is more than a log can count has no limit.
func duration(ms int64) time.Duration {
	const most = 1 << 60 / int64(time.Millisecond)
	if ms < 0 || ms > most {
		return varve.Unlimited
	}
	return time.Duration(ms) * time.Millisecond
}

// pairs returns a configuration sorted by name.
func pairs(config map[string]string) []topics.Pair {
	list := make([]topics.Pair, 0, len(config))
	for name, value := range config {
		list = append(list, topics.Pair{Name: name, Value: value})
	}
	slices.SortFunc(list, func(a, b topics.Pair) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// values is the inverse of pairs.
func values(config []topics.Pair) map[string]string {
	all := make(map[string]string, len(config))
	for _, p := range config {
		all[p.Name] = p.Value
	}
	return all
}
