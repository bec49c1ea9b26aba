package admin

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"varve"
	"varve/broker"
	"varve/core"
)

// seriesPartitions bounds the partitions that have series of their own, in the order of names. What is said of the node as a
// whole counts all of them.
const seriesPartitions = 1000

// Labels that a series may have.
const (
	labelTopic     = "topic"
	labelPartition = "partition"
	labelTier      = "tier"
)

// measure is one metric of a partition.
type measure struct {
	name  string
	help  string
	kind  prometheus.ValueType
	value func(s *varve.Stats) float64
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// measures are the metrics of a partition without a tier.
var measures = []measure{
	{"start", "First offset that can be read.", gauge, func(s *varve.Stats) float64 { return float64(s.Start) }},
	{"committed", "Offset at which readers stop.", gauge, func(s *varve.Stats) float64 { return float64(s.Committed) }},
	{"end", "Offset that the next record gets.", gauge, func(s *varve.Stats) float64 { return float64(s.End) }},
	{"epoch", "Life of the log; Kafka's leader epoch.", gauge, func(s *varve.Stats) float64 { return float64(s.Epoch) }},
	{"commits_total", "Writes of the log, each of one or more batches.", counter, func(s *varve.Stats) float64 { return float64(s.Commits) }},
	{"sync_batch_appends_total", "Batches in those writes; divided by them, how many share one.", counter, func(s *varve.Stats) float64 { return float64(s.CommitBatches) }},
	{"commit_records_total", "Records in those writes.", counter, func(s *varve.Stats) float64 { return float64(s.CommitRecords) }},
	{"commit_bytes_total", "Bytes in those writes.", counter, func(s *varve.Stats) float64 { return float64(s.CommitBytes) }},
	{"syncs_total", "Syncs of the disk beside those writes.", counter, func(s *varve.Stats) float64 { return float64(s.Syncs) }},
	{"sync_failures_total", "Syncs that failed; each poisons the log.", counter, func(s *varve.Stats) float64 { return float64(s.SyncFailures) }},
	{"poisoned", "1 if the log takes no appends before the node has opened it again, which it does in some seconds.", gauge, func(s *varve.Stats) float64 { return truth(s.Poisoned) }},
	{"low_space", "1 if appends are refused for want of space on disk.", gauge, func(s *varve.Stats) float64 { return truth(s.LowSpace) }},
	{"rollbacks_total", "Writes that failed and were undone.", counter, func(s *varve.Stats) float64 { return float64(s.Rollbacks) }},
	{"segment_roll_total", "Segments begun.", counter, func(s *varve.Stats) float64 { return float64(s.Rolls) }},
	{"duplicates_total", "Batches that an idempotent producer sent again.", counter, func(s *varve.Stats) float64 { return float64(s.Duplicates) }},
	{"refused_total", "Appends that were refused.", counter, func(s *varve.Stats) float64 { return float64(s.Refused) }},
	{"pending_bytes", "Accepted and not yet written.", gauge, func(s *varve.Stats) float64 { return float64(s.PendingBytes) }},
	{"unsynced_bytes", "Written and not yet known to be on the device.", gauge, func(s *varve.Stats) float64 { return float64(s.UnsyncedBytes) }},
	{"segments", "Sealed segments that are served.", gauge, func(s *varve.Stats) float64 { return float64(s.SealedSegments) }},
	{"segment_bytes", "Bytes of all files that are served.", gauge, func(s *varve.Stats) float64 { return float64(s.SegmentBytes) }},
	{"corruption_total", "Damage that was met.", counter, func(s *varve.Stats) float64 { return float64(s.Corruptions) }},
	{"recovery_duration_seconds", "How long the open took.", gauge, func(s *varve.Stats) float64 { return s.Recovery.Seconds() }},
	{"recovery_torn_bytes", "Of an unfinished write that the open found.", gauge, func(s *varve.Stats) float64 { return float64(s.TornBytes) }},
	{"recovery_rescued_bytes", "That the open copied, because nothing proved them to be on the device.", gauge, func(s *varve.Stats) float64 { return float64(s.RescuedBytes) }},
	{"export_lag_bytes", "Of the files that the cold tier does not have whole; -1: it has not answered.", gauge, func(s *varve.Stats) float64 { return float64(s.ColdLagBytes) }},
	{"export_lag_segments", "Those files.", gauge, func(s *varve.Stats) float64 { return float64(s.ColdLagSegments) }},
	{"warm_lag_bytes", "Written and not confirmed by the warm tier.", gauge, func(s *varve.Stats) float64 { return float64(s.WarmLagBytes) }},
	{"warm_waived", "Records acked without the warm tier, because the policy says so.", gauge, func(s *varve.Stats) float64 { return float64(max(0, s.WarmWaived-s.WarmEnd)) }},
	{"warm_degraded", "1 if the warm tier does not answer, or is behind for too long.", gauge, func(s *varve.Stats) float64 { return truth(s.WarmStalled || s.WarmError != nil) }},
}

// tierMeasures are the metrics of a partition in a tier. A tier that a partition does not have has no series.
var tierMeasures = []struct {
	name  string
	help  string
	kind  prometheus.ValueType
	value func(s *varve.Stats, t core.Tier) (v float64, ok bool)
}{
	{"tier_start", "First offset that the tier holds.", gauge, func(s *varve.Stats, t core.Tier) (float64, bool) {
		start, _, ok := span(s, t)
		return float64(start), ok
	}},
	{"tier_end", "End of what the tier holds without a gap.", gauge, func(s *varve.Stats, t core.Tier) (float64, bool) {
		_, end, ok := span(s, t)
		return float64(end), ok
	}},
	{"tier_read_bytes_total", "Bytes that readers got from the tier.", counter, func(s *varve.Stats, t core.Tier) (float64, bool) {
		return float64(s.ReadBytes[t]), true
	}},
}

// span returns what a tier holds, false if nothing is known of it.
func span(s *varve.Stats, t core.Tier) (start, end int64, ok bool) {
	switch t {
	case core.TierHot:
		return max(s.Start, s.HotStart), s.End, true
	case core.TierWarm:
		return s.WarmFrom, s.WarmEnd, s.WarmEnd > 0
	case core.TierCold:
		return s.Start, s.Exported, s.Exported > 0
	}
	return 0, 0, false
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collector reads the node when it is asked.
type collector struct {
	node   func() *broker.Broker // nil: not there yet
	series int                   // so many partitions have series of their own
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("varve_"+name, help, labels, nil)
}

var (
	measureDescs, tierDescs = descs()

	readyDesc     = desc("ready", "1 if clients are served.")
	catalogueDesc = desc("catalogue_ready", "1 if topics can be created, changed and deleted.")
	openedDesc    = desc("opened_partitions", "Partitions that are open, or could not be opened.")
	topicsDesc    = desc("topics", "Topics of the node.")
	allDesc       = desc("partitions", "Partitions of the node.")
	offlineDesc   = desc("offline_partitions", "Partitions that are not served.")
	poisonedDesc  = desc("poisoned_partitions", "Partitions that take no appends before the node has opened them again, which it does in some seconds.")
	unlistedDesc  = desc("unlisted_partitions", "Partitions that have no series of their own, because there are too many.")
	partitionDesc = desc("partition_offline", "1 if the partition is not served.", labelTopic, labelPartition)
)

func descs() (plain, tiers []*prometheus.Desc) {
	for _, m := range measures {
		plain = append(plain, desc(m.name, m.help, labelTopic, labelPartition))
	}
	for _, m := range tierMeasures {
		tiers = append(tiers, desc(m.name, m.help, labelTopic, labelPartition, labelTier))
	}
	return plain, tiers
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, all := range [][]*prometheus.Desc{measureDescs, tierDescs, {
		readyDesc, catalogueDesc, openedDesc, topicsDesc, allDesc, offlineDesc, poisonedDesc, unlistedDesc, partitionDesc,
	}} {
		for _, d := range all {
			to <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	one := func(d *prometheus.Desc, v float64) { to <- prometheus.MustNewConstMetric(d, gauge, v) }
	b := c.node()
	if b == nil {
		one(readyDesc, 0)
		return
	}
	ready, opened, _ := b.Ready()
	one(readyDesc, truth(ready))
	one(catalogueDesc, truth(b.Catalogue() == nil))
	var all, offline, poisoned int
	topics := b.Topics()
	for _, t := range topics {
		for i := range t.Partitions() {
			p, err := t.Partition(i)
			if err != nil {
				continue // it was deleted meanwhile
			}
			all++
			var stats *varve.Stats
			if l := p.Log(); l != nil {
				s := l.Stats()
				stats = &s
			}
			if stats == nil {
				offline++
			} else if stats.Poisoned {
				poisoned++
			}
			if all <= c.series {
				partition(to, t.Name, i, stats)
			}
		}
	}
	if ready { // what was created since is open, too
		opened = all
	}
	one(openedDesc, float64(opened))
	one(topicsDesc, float64(len(topics)))
	one(allDesc, float64(all))
	one(offlineDesc, float64(offline))
	one(poisonedDesc, float64(poisoned))
	one(unlistedDesc, float64(max(0, all-c.series)))
}

// partition sends the series of one partition; stats is nil if it is offline.
func partition(to chan<- prometheus.Metric, topic string, number int32, stats *varve.Stats) {
	label := strconv.Itoa(int(number))
	to <- prometheus.MustNewConstMetric(partitionDesc, gauge, truth(stats == nil), topic, label)
	if stats == nil {
		return
	}
	for i, m := range measures {
		to <- prometheus.MustNewConstMetric(measureDescs[i], m.kind, m.value(stats), topic, label)
	}
	for i, m := range tierMeasures {
		for t := range core.TierCount {
			if v, ok := m.value(stats, t); ok {
				to <- prometheus.MustNewConstMetric(tierDescs[i], m.kind, v, topic, label, t.String())
			}
		}
	}
}
