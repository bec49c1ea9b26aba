package core

import (
	"fmt"

	"varve/core/manifest"
	"varve/core/segment"
)

// Unlimited is the retention value for no limit.
const Unlimited = -1

// Config is the numbers of a log. Bytes, and nanoseconds for durations.
type Config struct {
	LogID segment.LogID // identity of a log that Open creates; an existing one keeps its own
	Nonce uint64        // drawn by the driver for each life

	Sync         segment.SyncMode
	SyncInterval Time // Periodic: time between syncs; acks pause at twice that

	SegmentBytes      int64
	SegmentAge        Time // an active segment older than this rolls; Unlimited
	IndexSpacingBytes int64
	SectorBytes       int
	MaxBatchBytes     int64 // payload of one batch
	PendingBytes      int64 // accepted, not yet written
	MinFreeBytes      int64 // below it appends answer ErrNoSpace
	Preallocate       bool
	PrepareBytes      int64 // least step of zero-filling
	IdleSave          Time  // the frontier is saved after this much quiet: so a log with rarer commits syncs twice for each

	RetentionBytes         int64 // total that is kept at least; Unlimited
	RetentionAge           Time
	LocalRetentionBytes    int64 // on local disk, of what the cold tier holds; without one the lesser of both rules
	LocalRetentionAge      Time
	RetentionCheckInterval Time // between checks; the first one is made when the log is ready

	Cold             bool // a cold tier is configured
	ColdPageSegments int  // the manifest lists so many segments itself; older ones go to pages
	ColdScanObjects  int  // newest objects, of those that are not on disk, that an open reads for their producers
	ColdMaxUploadAge Time // an active segment older than this rolls, so that it reaches the cold tier; Unlimited

	Warm             bool  // a warm tier is configured
	WarmReplicas     int   // that confirm an entry before it counts
	WarmWait         Time  // how long an ack waits for the warm tier
	WarmAckOnTimeout bool  // then the disk alone is enough; else the append ends with ErrUnknown
	WarmBytes        int64 // most that the warm tier holds, about
	WarmSegments     int   // closed segments that the warm tier holds at most
	WarmEntryBytes   int64 // of one entry, about; a batch that is larger has its own
	WarmHoldBytes    int64 // a commit of fewer bytes waits until what is written is mirrored; 0: none waits

	ProducersMax int // producers remembered; beyond that the one silent longest is forgotten

	VerifyAllOnOpen    bool
	RepairChecksumTail bool
	AllowDamaged       bool
	AcceptLoss         bool // open although records are on no tier: Start moves behind them
	Create             bool // with a cold tier: begin a new log where neither directory nor bucket holds one
	Existing           bool // an absent or empty directory is refused, unless a tier holds the log
	Repair             bool // rebuild a lost superblock; declare what is damaged lost instead of refusing
	ReadOnly           bool // plan only: Open stops before its first write (check, read, dump)
}

// DefaultConfig returns the defaults. LogID and Nonce are the caller's to draw.
func DefaultConfig() Config {
	const second = 1_000_000_000
	return Config{
		Sync: segment.OnCommit, SyncInterval: second / 4,
		SegmentBytes: 256 << 20, SegmentAge: 24 * 3600 * second, IndexSpacingBytes: 4096,
		SectorBytes: 512, MaxBatchBytes: 16 << 20, PendingBytes: 64 << 20,
		MinFreeBytes: 256 << 20, Preallocate: true, PrepareBytes: 1 << 20, IdleSave: second / 100,
		RetentionBytes: Unlimited, RetentionAge: Unlimited,
		LocalRetentionBytes: Unlimited, LocalRetentionAge: Unlimited,
		RetentionCheckInterval: 60 * second, ColdMaxUploadAge: Unlimited, ColdPageSegments: manifest.SegmentsMax, ColdScanObjects: 64,
		WarmReplicas: 1, WarmWait: second / 10, WarmBytes: bytesMax, WarmSegments: 5, WarmEntryBytes: 1 << 20,
		WarmHoldBytes: 128 << 10, ProducersMax: 4096,
	}
}

// Upper bounds, so that no sum of a reading of the clock or of positions with a configured value
// overflows: 36 years, 1 TiB.
const (
	timeMax  Time = 1 << 60
	bytesMax      = 1 << 40
)

// ConfigError says which key cannot have the value that it has.
type ConfigError struct {
	Key   string // as in a configuration file
	Value any
	Want  string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("core: config %s = %v: want %s", e.Key, e.Value, e.Want)
}

// Validate names the first key whose value cannot work. The error is a *ConfigError.
func (c *Config) Validate() error {
	bad := func(key string, value any, want string) error {
		return &ConfigError{Key: key, Value: value, Want: want}
	}
	limit := func(v int64) bool { return v == Unlimited || v > 0 }
	switch {
	case c.Sync > segment.NoSync:
		return bad("fsync_mode", c.Sync, "on_commit, periodic or none")
	case c.SyncInterval < 1_000_000 || c.SyncInterval > timeMax:
		return bad("fsync_interval_ms", c.SyncInterval, "1 ms to 36 years")
	case c.SectorBytes < 512 || c.SectorBytes > 4096 || c.SectorBytes&(c.SectorBytes-1) != 0:
		return bad("sector_bytes", c.SectorBytes, "a power of two in 512..4096")
	case c.SegmentBytes < 2*int64(c.SectorBytes) || c.SegmentBytes > bytesMax:
		return bad("segment_bytes", c.SegmentBytes, "two sectors up to 1 TiB")
	case c.IndexSpacingBytes < 1 || c.IndexSpacingBytes > 1<<30:
		return bad("index_spacing_bytes", c.IndexSpacingBytes, "1 byte to 1 GiB")
	case c.MaxBatchBytes < 1 || c.MaxBatchBytes > 1<<30:
		return bad("max_batch_bytes", c.MaxBatchBytes, "1 byte to 1 GiB")
	case c.PendingBytes < c.MaxBatchBytes || c.PendingBytes > bytesMax:
		return bad("pending_bytes", c.PendingBytes, "at least max_batch_bytes, at most 1 TiB")
	case c.MinFreeBytes < 0:
		return bad("min_free_bytes", c.MinFreeBytes, "0 or more")
	case c.Preallocate && (c.PrepareBytes < int64(c.SectorBytes) || c.PrepareBytes > bytesMax):
		return bad("prepare_bytes", c.PrepareBytes, "a sector up to 1 TiB")
	case c.IdleSave < 0 || c.IdleSave > timeMax:
		return bad("idle_save", c.IdleSave, "0 up to 36 years")
	case c.SegmentAge != Unlimited && (c.SegmentAge < 1_000_000 || c.SegmentAge > timeMax):
		return bad("segment_age", c.SegmentAge, "1 ms up to 36 years, or -1 for unlimited")
	case !limit(c.RetentionBytes):
		return bad("retention_bytes", c.RetentionBytes, "above 0, or -1 for unlimited")
	case !limit(c.RetentionAge):
		return bad("retention_age", c.RetentionAge, "above 0, or -1 for unlimited")
	case !limit(c.LocalRetentionBytes):
		return bad("local_retention_bytes", c.LocalRetentionBytes, "above 0, or -1 for unlimited")
	case !limit(c.LocalRetentionAge):
		return bad("local_retention_age", c.LocalRetentionAge, "above 0, or -1 for unlimited")
	case c.RetentionCheckInterval <= 0 || c.RetentionCheckInterval > timeMax:
		return bad("retention_check_interval", c.RetentionCheckInterval, "above 0 up to 36 years")
	case c.ColdMaxUploadAge != Unlimited && (c.ColdMaxUploadAge < 1_000_000 || c.ColdMaxUploadAge > timeMax):
		return bad("cold.max_upload_age", c.ColdMaxUploadAge, "1 ms up to 36 years, or -1 for unlimited")
	case c.ColdPageSegments < 1 || c.ColdPageSegments > manifest.SegmentsMax:
		return bad("cold.page_segments", c.ColdPageSegments, fmt.Sprintf("1 up to %d", manifest.SegmentsMax))
	case c.ColdScanObjects < 0 || c.ColdScanObjects > 1<<20:
		return bad("cold.scan_objects", c.ColdScanObjects, "0 up to 1,048,576")
	case c.Warm && (c.WarmReplicas < 0 || c.WarmReplicas > 100):
		return bad("warm.wait_replicas", c.WarmReplicas, "0 to 100")
	case c.Warm && (c.WarmWait < 1_000_000 || c.WarmWait > 3600*second):
		return bad("warm.wait_timeout_ms", c.WarmWait, "1 ms to an hour")
	case c.Warm && (c.WarmBytes < 1 || c.WarmBytes > bytesMax):
		return bad("warm.max_bytes", c.WarmBytes, "1 byte to 1 TiB")
	case c.Warm && (c.WarmSegments < 0 || c.WarmSegments > 1_000_000):
		return bad("warm.max_cached_closed_segments", c.WarmSegments, "0 to 1000000")
	case c.Warm && (c.WarmEntryBytes < 1 || c.WarmEntryBytes > 1<<30):
		return bad("warm.entry_bytes", c.WarmEntryBytes, "1 byte to 1 GiB")
	case c.Warm && (c.WarmHoldBytes < 0 || c.WarmHoldBytes > 1<<30):
		return bad("warm.hold_bytes", c.WarmHoldBytes, "0 to 1 GiB")
	case c.ProducersMax < 1:
		return bad("producers_max", c.ProducersMax, "1 or more")
	}
	return nil
}

// Warnings names combinations of values that work, but keep more than somebody may have meant: only
// whole segments go, and only when retention looks.
func (c *Config) Warnings() (all []string) {
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	size := func(key string, limit int64) {
		if limit != Unlimited && limit <= c.SegmentBytes {
			warn("%s (%d) is no more than segment_bytes (%d): up to a segment more than that is kept", key, limit, c.SegmentBytes)
		}
	}
	age := func(key string, limit Time) {
		if limit == Unlimited {
			return
		}
		if c.SegmentAge == Unlimited || c.SegmentAge > limit {
			warn("segment_age is above %s: records stay until their segment is full or that old", key)
		}
		if c.RetentionCheckInterval > limit {
			warn("retention_check_interval is above %s: records stay that much longer", key)
		}
	}
	size("retention_bytes", c.RetentionBytes)
	size("local_retention_bytes", c.LocalRetentionBytes)
	age("retention_age", c.RetentionAge)
	age("local_retention_age", c.LocalRetentionAge)
	return all
}
