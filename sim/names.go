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
}

// words are the values of arguments that are no amounts. Those of Arm are in package faultfs.
var words = [kindCount][4][]string{
	Append: {2: {"pattern", "zeros", "mixed"}},
	Crash:  {0: deathWords},
	Doom:   {1: deathWords},
	Clock:  {0: {"forward", "back", "freeze", "skew"}},
	Slow:   {0: {"tail", "sync", "hot"}},
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
	if k < kindCount {
		return kindNames[k]
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
	SwIdle: "idle",
}

// configKey is one number of a configuration in the text form.
type configKey struct {
	name string
	at   func(c *core.Config) int64
	put  func(c *core.Config, v int64)
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var configKeys = []configKey{
	{
		"sync", func(c *core.Config) int64 { return int64(c.Sync) },
		func(c *core.Config, v int64) { c.Sync = segment.SyncMode(v) },
	},
	{
		"sync_interval", func(c *core.Config) int64 { return c.SyncInterval },
		func(c *core.Config, v int64) { c.SyncInterval = v },
	},
	{
		"segment_bytes", func(c *core.Config) int64 { return c.SegmentBytes },
		func(c *core.Config, v int64) { c.SegmentBytes = v },
	},
	{
		"segment_age", func(c *core.Config) int64 { return c.SegmentAge },
		func(c *core.Config, v int64) { c.SegmentAge = v },
	},
	{
		"index_spacing_bytes", func(c *core.Config) int64 { return c.IndexSpacingBytes },
		func(c *core.Config, v int64) { c.IndexSpacingBytes = v },
	},
	{
		"sector_bytes", func(c *core.Config) int64 { return int64(c.SectorBytes) },
		func(c *core.Config, v int64) { c.SectorBytes = int(v) },
	},
	{
		"max_batch_bytes", func(c *core.Config) int64 { return c.MaxBatchBytes },
		func(c *core.Config, v int64) { c.MaxBatchBytes = v },
	},
	{
		"pending_bytes", func(c *core.Config) int64 { return c.PendingBytes },
		func(c *core.Config, v int64) { c.PendingBytes = v },
	},
	{
		"min_free_bytes", func(c *core.Config) int64 { return c.MinFreeBytes },
		func(c *core.Config, v int64) { c.MinFreeBytes = v },
	},
	{
		"preallocate", func(c *core.Config) int64 { return boolean(c.Preallocate) },
		func(c *core.Config, v int64) { c.Preallocate = v != 0 },
	},
	{
		"prepare_bytes", func(c *core.Config) int64 { return c.PrepareBytes },
		func(c *core.Config, v int64) { c.PrepareBytes = v },
	},
	{
		"idle_save", func(c *core.Config) int64 { return c.IdleSave },
		func(c *core.Config, v int64) { c.IdleSave = v },
	},
	{
		"retention_bytes", func(c *core.Config) int64 { return c.RetentionBytes },
		func(c *core.Config, v int64) { c.RetentionBytes = v },
	},
	{
		"retention_age", func(c *core.Config) int64 { return c.RetentionAge },
		func(c *core.Config, v int64) { c.RetentionAge = v },
	},
	{
		"local_retention_bytes", func(c *core.Config) int64 { return c.LocalRetentionBytes },
		func(c *core.Config, v int64) { c.LocalRetentionBytes = v },
	},
	{
		"local_retention_age", func(c *core.Config) int64 { return c.LocalRetentionAge },
		func(c *core.Config, v int64) { c.LocalRetentionAge = v },
	},
	{
		"retention_check_interval", func(c *core.Config) int64 { return c.RetentionCheckInterval },
		func(c *core.Config, v int64) { c.RetentionCheckInterval = v },
	},
	{
		"producers_max", func(c *core.Config) int64 { return int64(c.ProducersMax) },
		func(c *core.Config, v int64) { c.ProducersMax = int(v) },
	},
	{
		"verify_all_on_open", func(c *core.Config) int64 { return boolean(c.VerifyAllOnOpen) },
		func(c *core.Config, v int64) { c.VerifyAllOnOpen = v != 0 },
	},
	{
		"repair_checksum_tail", func(c *core.Config) int64 { return boolean(c.RepairChecksumTail) },
		func(c *core.Config, v int64) { c.RepairChecksumTail = v != 0 },
	},
	{
		"allow_damaged", func(c *core.Config) int64 { return boolean(c.AllowDamaged) },
		func(c *core.Config, v int64) { c.AllowDamaged = v != 0 },
	},
}
