package sim

import (
	"strconv"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// kindNames are the words of the text form.
var kindNames = [kindCount]string{
	Append: "append", Retry: "retry", Read: "read", Poll: "poll", Query: "query", Trim: "trim",
	RollNow: "roll", FindTime: "findtime", Restart: "restart", Crash: "crash", Doom: "doom",
	Arm: "arm", Hurt: "hurt", Heal: "heal", Clock: "clock", Pause: "pause",
	WriteBack: "writeback", Rot: "rot", Second: "second", Slow: "slow", Idle: "idle",
	Offload: "offload", Lose: "lose", Move: "move", Spoil: "spoil", Outage: "outage", Server: "server",
	TopicCreate: "create", TopicDelete: "delete", TopicGrow: "grow", TopicConfigure: "configure",
	Produce: "produce", Fetch: "fetch", Metadata: "metadata", ListEnds: "ends",
	EpochEnds: "epochs", DeleteRecords: "deleterecords",
}

// argNames are the words of the arguments A, B, C, D; "" means not used and zero.
var argNames = [kindCount][4]string{
	Append:   {"bytes", "records", "content", "producer"},
	Retry:    {"producer"},
	Read:     {"where", "fetch", "batches"},
	Poll:     {"fetch", "batches"},
	Trim:     {"where"},
	FindTime: {"where"},
	Restart:  {"config", "delay", "lives"},
	Crash:    {"how", "calls", "delay", "recovery"},
	Doom:     {"calls", "how", "saves"},
	Arm:      {"fault", "call", "skip"},
	Clock:    {"how", "by"},
	Pause:    {"for"},
	Rot:      {"where", "bits"},
	Slow:     {"lane", "for"},
	Offload:  {"where"},
	Lose:     {"delay"},
	Move:     {"delay", "pause"},
	Spoil:    {"where", "how"},
	Outage:   {"how"},
	Server:   {"how", "replica"},

	TopicCreate:    {"topic", "partitions"},
	TopicDelete:    {"topic"},
	TopicGrow:      {"topic", "partitions"},
	TopicConfigure: {"topic", "which"},
	Produce:        {"topic", "partition", "batch", "producer"},
	Fetch:          {"topic", "partition", "where", "fetch"},
	Metadata:       {"topic"},
	ListEnds:       {"topic", "partition"},
	EpochEnds:      {"topic", "partition", "epoch"},
	DeleteRecords:  {"topic", "partition", "where"},
}

// words are the values of arguments that are no amounts. Those of Arm are in package faultfs.
var words = [kindCount][4][]string{
	Append: {2: {"pattern", "zeros", "mixed"}},
	Crash:  {0: deathWords},
	Doom:   {1: deathWords},
	Clock:  {0: {"forward", "back", "freeze", "skew"}},
	Slow:   {0: {"tail", "sync", "hot", "uploads", "catalogue", "warm"}},
	Spoil:  {1: {"rot", "expired"}},
	Outage: {0: {"over", "timeout", "throttled", "denied", "readonly", "lost", "manifest"}},
	Server: {0: {"failover", "restart", "freeze", "thaw", "disconnect", "another"}},
}

var deathWords = []string{"kill", "power", "kill+power", "kill+pressure", "kill+pressure+power", "power+power"}

// valueWord returns the word for the value of an argument, "" if it is an amount.
func valueWord(k Kind, i int, v int64) string {
	list := words[k][i]
	switch {
	case k == Arm && i == 0 && 0 <= v && v < int64(faultfs.FaultCount):
		return faultfs.Fault(v).String()
	case k == Arm && i == 1 && 0 <= v && v < int64(faultfs.OpCount):
		return faultfs.Op(v).String()
	case 0 <= v && v < int64(len(list)):
		return list[v]
	}
	return ""
}

// parseValue is the inverse, for numbers as well.
func parseValue(k Kind, i int, text string) (int64, bool) {
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, true
	}
	for v := int64(0); valueWord(k, i, v) != ""; v++ {
		if valueWord(k, i, v) == text {
			return v, true
		}
	}
	return 0, false
}

// String returns the word of a kind.
func (k Kind) String() string {
	switch {
	case k < kindCount:
		return kindNames[k]
	case k == producerInit:
		return "producer"
	}
	return "unknown"
}

var deathNames = [deathCount]string{
	"kill -9", "power loss", "kill -9, then power loss", "kill -9, then memory pressure",
	"kill -9, memory pressure, power loss", "power loss, then another before the open",
}

var switchNames = [switchCount]string{
	SwSlow: "slow", SwHang: "hang", SwPressure: "pressure", SwPower: "power", SwBack: "writeback",
	SwSecond: "second", SwForward: "clock-forward", SwBackward: "clock-back",
	SwFreeze: "clock-freeze", SwSkew: "clock-skew", SwConfig: "config", SwPause: "pause",
	SwProducers: "producers", SwTrim: "trim", SwRoll: "roll", SwBig: "big", SwZeros: "zeros",
	SwIdle: "idle", SwOffload: "offload", SwLose: "lose", SwOutage: "outage", SwMove: "move",
	SwSpoil: "spoil", SwServer: "server", SwReplies: "replies",
	SwDeleteRecords: "delete-records", SwAnother: "another",
}

// configKey is one number of a configuration in the text form.
type configKey struct {
	name string
	at   func(c *core.Config) int64
	put  func(c *core.Config, v int64)
	tier core.Tier // only where there is that tier
}

// anyOther stands for every tier but the disk.
const anyOther = core.TierCount

// of makes a key one that only a log with a tier has.
func of(tier core.Tier, k configKey) configKey {
	k.tier = tier
	return k
}

// number is the key of a numeric field.
func number[T ~int | ~int64 | ~uint8](name string, field func(c *core.Config) *T) configKey {
	return configKey{
		name: name,
		at:   func(c *core.Config) int64 { return int64(*field(c)) },
		put:  func(c *core.Config, v int64) { *field(c) = T(v) },
	}
}

// flag is the key of a yes or no: 1 or 0.
func flag(name string, field func(c *core.Config) *bool) configKey {
	return configKey{
		name: name,
		at:   func(c *core.Config) int64 { return int64(boolHash(*field(c))) },
		put:  func(c *core.Config, v int64) { *field(c) = v != 0 },
	}
}

var configKeys = []configKey{
	number("sync", func(c *core.Config) *segment.SyncMode { return &c.Sync }),
	number("sync_interval", func(c *core.Config) *int64 { return &c.SyncInterval }),
	number("segment_bytes", func(c *core.Config) *int64 { return &c.SegmentBytes }),
	number("segment_age", func(c *core.Config) *int64 { return &c.SegmentAge }),
	number("index_spacing_bytes", func(c *core.Config) *int64 { return &c.IndexSpacingBytes }),
	number("sector_bytes", func(c *core.Config) *int { return &c.SectorBytes }),
	number("max_batch_bytes", func(c *core.Config) *int64 { return &c.MaxBatchBytes }),
	number("pending_bytes", func(c *core.Config) *int64 { return &c.PendingBytes }),
	number("min_free_bytes", func(c *core.Config) *int64 { return &c.MinFreeBytes }),
	flag("preallocate", func(c *core.Config) *bool { return &c.Preallocate }),
	number("prepare_bytes", func(c *core.Config) *int64 { return &c.PrepareBytes }),
	number("idle_save", func(c *core.Config) *int64 { return &c.IdleSave }),
	number("retention_bytes", func(c *core.Config) *int64 { return &c.RetentionBytes }),
	number("retention_age", func(c *core.Config) *int64 { return &c.RetentionAge }),
	number("local_retention_bytes", func(c *core.Config) *int64 { return &c.LocalRetentionBytes }),
	number("local_retention_age", func(c *core.Config) *int64 { return &c.LocalRetentionAge }),
	number("retention_check_interval", func(c *core.Config) *int64 { return &c.RetentionCheckInterval }),
	number("producers_max", func(c *core.Config) *int { return &c.ProducersMax }),
	flag("verify_all_on_open", func(c *core.Config) *bool { return &c.VerifyAllOnOpen }),
	flag("repair_checksum_tail", func(c *core.Config) *bool { return &c.RepairChecksumTail }),
	of(core.TierCold, flag("cold", func(c *core.Config) *bool { return &c.Cold })),
	of(core.TierCold, number("cold_max_upload_age", func(c *core.Config) *int64 { return &c.ColdMaxUploadAge })),
	of(core.TierCold, number("cold_page_segments", func(c *core.Config) *int { return &c.ColdPageSegments })),
	of(core.TierCold, number("cold_scan_objects", func(c *core.Config) *int { return &c.ColdScanObjects })),
	of(anyOther, flag("create", func(c *core.Config) *bool { return &c.Create })),
	of(core.TierWarm, flag("warm", func(c *core.Config) *bool { return &c.Warm })),
	of(core.TierWarm, number("warm_replicas", func(c *core.Config) *int { return &c.WarmReplicas })),
	of(core.TierWarm, number("warm_wait", func(c *core.Config) *int64 { return &c.WarmWait })),
	of(core.TierWarm, flag("warm_ack_on_timeout", func(c *core.Config) *bool { return &c.WarmAckOnTimeout })),
	of(core.TierWarm, number("warm_bytes", func(c *core.Config) *int64 { return &c.WarmBytes })),
	of(core.TierWarm, number("warm_segments", func(c *core.Config) *int { return &c.WarmSegments })),
	of(core.TierWarm, number("warm_entry_bytes", func(c *core.Config) *int64 { return &c.WarmEntryBytes })),
	of(core.TierWarm, number("warm_hold_bytes", func(c *core.Config) *int64 { return &c.WarmHoldBytes })),
	flag("allow_damaged", func(c *core.Config) *bool { return &c.AllowDamaged }),
}
