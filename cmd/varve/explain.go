package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"varve"
)

type explainCommand struct {
	WriteRate byteSize `default:"1048576" placeholder:"B" help:"Bytes a second that are appended, on which estimates rest; default 1 MiB."`
	JSON      bool     `name:"json" help:"Print JSON."`

	configFlag
	nodeSettings
}

// Validate checks the rate, too.
func (c *explainCommand) Validate() error {
	if c.WriteRate < 1 || c.WriteRate > 1<<40 {
		return fmt.Errorf("--write-rate %d: want 1 byte to 1 TiB a second", c.WriteRate)
	}
	return c.nodeSettings.Validate()
}

// Run prints what the configuration means.
func (c *explainCommand) Run(s *streams, from *origins) error {
	x := explain(&c.settings, int64(c.WriteRate))
	for i := range table {
		k := &table[i]
		where, set := from.source(k.name)
		if !set {
			where = "default"
		}
		x.Settings = append(x.Settings, keyValue{k.name, k.text(&c.nodeSettings), where})
	}
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(x)
	}
	x.print(s.out)
	return nil
}

// explanation is what a configuration means.
type explanation struct {
	Ack       string       `json:"ack"`
	Loss      loss         `json:"worst_loss"`
	RPO       []recovery   `json:"recovery_points"`
	WriteRate int64        `json:"bytes_per_second"`
	Memory    []share      `json:"memory"`
	Disk      diskBound    `json:"disk"`
	Requests  *requestCost `json:"cold_requests_per_day,omitempty"`
	Valkey    *warmCost    `json:"warm_memory,omitempty"`
	Warnings  []string     `json:"warnings"`
	Settings  []keyValue   `json:"settings"`
}

// loss is what each accident takes at worst, of what was acked.
type loss struct {
	ProcessKill string `json:"process_kill"`
	PowerLoss   string `json:"power_loss"`
	DiskLost    string `json:"disk_lost"`
}

// recovery is how far behind the newest ack a tier is at worst. Bytes are at the write rate; -1 is no
// bound.
type recovery struct {
	Tier    string  `json:"tier"`
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes"`
	Why     string  `json:"why"`
}

// share is a part of the memory that a log takes.
type share struct {
	What  string `json:"what"`
	Bytes int64  `json:"bytes"`
}

// keyValue is a key with its value and where that comes from.
type keyValue struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

func explain(s *settings, rate int64) *explanation {
	return &explanation{
		Ack: ackText(s), Loss: losses(s, rate), RPO: recoveryPoints(s, rate), WriteRate: rate,
		Memory: memory(s), Disk: onDisk(s, rate), Requests: requests(s, rate),
		Valkey: warmMemory(s), Warnings: warnings(s),
	}
}

func ackText(s *settings) string {
	text := "the page cache has it"
	if varve.FsyncMode(s.FsyncMode) == varve.OnCommit {
		text = "the device has it"
	}
	if !s.warm() {
		return text
	}
	text += fmt.Sprintf(" and Valkey replicas have confirmed it, %d of them; if they do not within %v, ",
		s.WarmWaitReplicas, time.Duration(s.WarmWaitTimeout)*time.Millisecond)
	if s.WarmOnWaitTimeout == waitAck {
		return text + "it is acked all the same"
	}
	return text + "its outcome is unknown (ErrUnknown)"
}

func losses(s *settings, rate int64) loss {
	l := loss{ProcessKill: "nothing", PowerLoss: "nothing"}
	switch varve.FsyncMode(s.FsyncMode) {
	case varve.Periodic:
		l.PowerLoss = fmt.Sprintf("a suffix of at most two intervals, %v; after a failed sync, a kill with memory pressure can take as much",
			2*time.Duration(s.FsyncInterval)*time.Millisecond)
	case varve.None:
		l.PowerLoss = "what the system had not written yet, without a bound; after a failed sync, a kill with memory pressure can take as much"
	}
	if s.warm() && l.PowerLoss != "nothing" {
		l.PowerLoss += "; then it is refilled from warm"
	}
	why := coldLag(s, rate).Why
	waived := ""
	if s.WarmOnWaitTimeout == waitAck {
		waived = "; and what was acked while the replicas did not answer"
	}
	switch {
	case s.warm() && s.cold():
		l.DiskLost = "nothing: refilled from warm and cold" + waived
	case s.warm():
		l.DiskLost = fmt.Sprintf("all but the active segment and the last %d closed ones, which are refilled from warm%s", s.WarmMaxCachedClosedSegments, waived)
	case s.cold():
		l.DiskLost = "what is not in the cold tier: " + why
	default:
		l.DiskLost = "everything"
	}
	return l
}

func recoveryPoints(s *settings, rate int64) []recovery {
	hot := recovery{Tier: "hot", Why: "every ack is on the device"}
	switch varve.FsyncMode(s.FsyncMode) {
	case varve.Periodic:
		d := 2 * time.Duration(s.FsyncInterval) * time.Millisecond
		hot = lag("hot", d, rate, "two intervals of fsync_interval_ms")
	case varve.None:
		hot = recovery{Tier: "hot", Seconds: -1, Bytes: -1, Why: "only a sealed or closed segment is synced"}
	}
	all := []recovery{hot}
	if s.warm() {
		warm := recovery{Tier: "warm", Why: "an ack waits for it"}
		if s.WarmOnWaitTimeout == waitAck {
			warm = recovery{Tier: "warm", Seconds: -1, Bytes: -1, Why: "an ack does not wait longer than warm.wait_timeout_ms"}
		}
		all = append(all, warm)
	}
	if s.cold() {
		all = append(all, coldLag(s, rate))
	}
	return all
}

func lag(tier string, d time.Duration, rate int64, why string) recovery {
	return recovery{Tier: tier, Seconds: d.Seconds(), Bytes: times(rate, d), Why: why}
}

// coldLag is how long a record may be in the active segment.
func coldLag(s *settings, rate int64) recovery {
	full := timeFor(segmentBytes(s), rate)
	age, key := time.Duration(math.MaxInt64), "segment_age"
	if s.SegmentAge != varve.Unlimited {
		age = time.Duration(s.SegmentAge)
	}
	if s.ColdMaxUploadAge != varve.Unlimited && time.Duration(s.ColdMaxUploadAge) < age {
		age, key = time.Duration(s.ColdMaxUploadAge), "cold.max_upload_age"
	}
	if full <= age {
		return lag("cold", full, rate, fmt.Sprintf("a segment (segment_bytes, full in %v), and the time of its upload", durationText(round(full))))
	}
	return lag("cold", age, rate, fmt.Sprintf("%s (%v; a segment takes longer to fill), and the time of the upload", key, durationText(round(age))))
}

// times returns what arrives in a time.
func times(rate int64, d time.Duration) int64 {
	if v := float64(rate) * d.Seconds(); v < math.MaxInt64 {
		return int64(v)
	}
	return math.MaxInt64
}

// timeFor returns how long it takes to write so many bytes.
func timeFor(bytes, rate int64) time.Duration {
	if v := float64(bytes) / float64(rate) * 1e9; v < math.MaxInt64 {
		return time.Duration(v)
	}
	return math.MaxInt64
}

func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

// warnings are combinations that work and may surprise.
func warnings(s *settings) []string {
	o := s.options()
	all := append([]string{}, o.Warnings()...)
	for _, w := range []struct {
		is   bool
		text string
	}{
		{s.AllowDamaged, "allow_damaged is on: the log opens in spite of damage; take it out after one open"},
		{s.AcceptLoss, "accept_loss is on: an open gives up what no tier can give back; take it out after one open"},
		{s.RepairChecksumTail, "repair_checksum_tail is on: a damaged last batch is dropped; take it out after one open"},
		{s.MinFreeBytes == 0, "min_free_bytes is 0: appends go on until the disk is full, and so may others' writes fail"},
		{!s.warm() && !s.cold(), "there is one copy, on the local disk: if it is lost, so is everything"},
		{s.warm() && s.WarmWaitReplicas == 0, "warm.wait_replicas is 0: an acked record may be in the memory of one Valkey server only"},
		{s.warm() && s.WarmWaitReplicas > 0, fmt.Sprintf("warm.wait_replicas is %d: unless that is a majority of the replicas, a failover can promote one that lacks acked records", s.WarmWaitReplicas)},
		{s.warm() && s.WarmOnWaitTimeout == waitAck, "warm.on_wait_timeout is ack: a record may be acked that Valkey does not have"},
		{s.warm() && !s.cold(), "there is no cold tier behind warm: what warm is trimmed of is on the local disk alone"},
		{s.cold() && !s.warm(), "there is no warm tier: a second host that takes the log over is noticed at the manifest only, which a segment reaches when it is full or old"},
		{s.cold() && s.ColdMaxUploadAge == varve.Unlimited && s.SegmentAge == varve.Unlimited, "cold.max_upload_age and segment_age are both unlimited: the last segment of an idle log is never uploaded"},
		{s.cold() && s.Create, "create is on: where the bucket's file system is not mounted, or another bucket is named, a new one is begun; take it out after one open"},
		{!s.cold() && limited(s), "local_retention_* without a cold tier: what it removes is gone"},
	} {
		if w.is {
			all = append(all, w.text)
		}
	}
	return all
}

func limited(s *settings) bool {
	return s.LocalRetentionBytes != varve.Unlimited || s.LocalRetentionAge != varve.Unlimited
}
