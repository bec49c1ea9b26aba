package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"varve"
	"varve/core"
)

// settings are the keys of a configuration: in a file, as an environment variable and as a flag. This
// struct is the one table of them (table.go reads it); a test compares it with the README's.
type settings struct {
	FsyncMode     fsyncMode `name:"fsync" aliases:"fsync-mode" env:"VARVE_FSYNC_MODE" default:"on_commit" placeholder:"MODE" help:"When an append is acked: on_commit (default), periodic or none."`
	FsyncInterval int       `name:"fsync-interval-ms" env:"VARVE_FSYNC_INTERVAL_MS" default:"250" help:"Milliseconds between syncs under periodic."`

	SegmentBytes      byteSize `env:"VARVE_SEGMENT_BYTES" default:"268435456" help:"A segment file rolls at this size."`
	SegmentAge        ageLimit `env:"VARVE_SEGMENT_AGE" default:"24h" help:"And at this age; -1: never."`
	IndexSpacingBytes byteSize `env:"VARVE_INDEX_SPACING_BYTES" default:"4096" help:"One index entry for so many bytes."`
	MaxBatchBytes     byteSize `env:"VARVE_MAX_BATCH_BYTES" default:"16777216" help:"Payload of one batch, and with that of one record."`
	PendingBytes      byteSize `env:"VARVE_PENDING_BYTES" default:"67108864" help:"Accepted and not yet written."`
	MinFreeBytes      byteSize `env:"VARVE_MIN_FREE_BYTES" default:"268435456" help:"Appends are refused with less free space; 0: never."`
	Preallocate       bool     `env:"VARVE_PREALLOCATE" default:"true" negatable:"" help:"Zero-fill ahead of the tail (faster syncs)."`

	RetentionBytes         byteLimit     `env:"VARVE_RETENTION_BYTES" default:"-1" help:"Oldest segments go if this many bytes stay without them; -1: unlimited."`
	RetentionAge           ageLimit      `env:"VARVE_RETENTION_AGE" default:"-1" help:"Segments go at this age of their newest record; -1: unlimited."`
	LocalRetentionBytes    byteLimit     `env:"VARVE_LOCAL_RETENTION_BYTES" default:"-1" help:"As retention-bytes, for the local disk."`
	LocalRetentionAge      ageLimit      `env:"VARVE_LOCAL_RETENTION_AGE" default:"-1" help:"As retention-age, for the local disk."`
	RetentionCheckInterval time.Duration `env:"VARVE_RETENTION_CHECK_INTERVAL" default:"60s" help:"Time between looks at retention, the first one at the open."`

	VerifyAllOnOpen    bool `env:"VARVE_VERIFY_ALL_ON_OPEN" default:"false" help:"Verify every batch at open."`
	RepairChecksumTail bool `env:"VARVE_REPAIR_CHECKSUM_TAIL" default:"false" help:"Treat a last batch with a wrong payload checksum as torn."`
	AllowDamaged       bool `env:"VARVE_ALLOW_DAMAGED" default:"false" help:"Open in spite of damage and serve everything else."`
	AcceptLoss         bool `env:"VARVE_ACCEPT_LOSS" default:"false" help:"Open without what no tier has any more: give those records up."`
	Create             bool `env:"VARVE_CREATE" default:"false" help:"Make a new log where there is none. Without tiers that is what happens anyway."`

	tierSettings
}

// room says what makes space for a log, apart from freeing it.
func (s *settings) room() string {
	switch {
	case s.cold():
		return "; files leave the disk by themselves once the cold tier has them"
	case s.RetentionBytes == varve.Unlimited && s.RetentionAge == varve.Unlimited && s.LocalRetentionBytes == varve.Unlimited && s.LocalRetentionAge == varve.Unlimited:
		return ", or let old records go: no retention is set (retention_bytes, retention_age)"
	}
	return ", or let retention keep less"
}

// options translates settings; values that cannot work are the library's to refuse, by key.
func (s *settings) options() varve.Options {
	o := varve.Options{
		Fsync: varve.FsyncMode(s.FsyncMode), FsyncInterval: time.Duration(s.FsyncInterval) * time.Millisecond,
		SegmentBytes: int64(s.SegmentBytes), SegmentAge: time.Duration(s.SegmentAge),
		IndexSpacingBytes: int64(s.IndexSpacingBytes), MaxBatchBytes: int64(s.MaxBatchBytes),
		PendingBytes: int64(s.PendingBytes), MinFreeBytes: int64(s.MinFreeBytes), NoPreallocate: !s.Preallocate,
		RetentionBytes: int64(s.RetentionBytes), RetentionAge: time.Duration(s.RetentionAge),
		LocalRetentionBytes: int64(s.LocalRetentionBytes), LocalRetentionAge: time.Duration(s.LocalRetentionAge),
		RetentionCheckInterval: s.RetentionCheckInterval,
		VerifyAllOnOpen:        s.VerifyAllOnOpen, RepairChecksumTail: s.RepairChecksumTail, AllowDamaged: s.AllowDamaged,
		AcceptLoss: s.AcceptLoss, Create: s.Create,
		ColdPartBytes: int64(s.ColdPartBytes), ColdMaxUploadAge: time.Duration(s.ColdMaxUploadAge),
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = -1 // the library's zero is its default
	}
	return o
}

// Validate refuses what the library would take for "not set", and combinations that cannot work. The
// error is a *core.ConfigError.
func (s *settings) Validate() error {
	switch {
	case s.FsyncInterval < 1 || int64(s.FsyncInterval) > fsyncIntervalMax:
		return unfit("fsync_interval_ms", s.FsyncInterval, "1 ms to 36 years")
	case s.SegmentBytes == 0:
		return unfit("segment_bytes", 0, "two sectors up to 1 TiB")
	case s.IndexSpacingBytes == 0:
		return unfit("index_spacing_bytes", 0, "1 byte to 1 GiB")
	case s.MaxBatchBytes == 0:
		return unfit("max_batch_bytes", 0, "1 byte to 1 GiB")
	case s.PendingBytes < s.MaxBatchBytes:
		return unfit("pending_bytes", int64(s.PendingBytes), fmt.Sprintf("at least max_batch_bytes (%d)", s.MaxBatchBytes))
	case s.RetentionCheckInterval <= 0:
		return unfit("retention_check_interval", s.RetentionCheckInterval, "above 0")
	}
	o := s.options()
	if err := o.Validate(); err != nil {
		return err
	}
	if err := s.tierSettings.Validate(); err != nil {
		return err
	}
	return s.fits(int64(s.SegmentBytes))
}

// fsyncIntervalMax is the library's limit, in milliseconds.
const fsyncIntervalMax = 1 << 60 / int64(time.Millisecond)

// unfit is the error of a key that cannot have the value that it has.
func unfit(key string, value any, want string) error {
	return &core.ConfigError{Key: key, Value: value, Want: want}
}

// fsyncMode is a mode as the configuration spells it.
type fsyncMode varve.FsyncMode

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *fsyncMode) UnmarshalText(b []byte) error {
	for _, mode := range []varve.FsyncMode{varve.OnCommit, varve.Periodic, varve.None} {
		if string(b) == mode.String() {
			*m = fsyncMode(mode)
			return nil
		}
	}
	return fmt.Errorf("%q is none of on_commit, periodic, none", b)
}

// byteSize is a number of bytes, 0 or more: plain, or with a suffix of KiB, MiB, GiB or TiB.
type byteSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *byteSize) UnmarshalText(b []byte) error {
	v, err := parseBytes(string(b))
	if err == nil && v < 0 {
		err = fmt.Errorf("%s: want 0 bytes or more", b)
	}
	*s = byteSize(v)
	return err
}

// byteLimit is a number of bytes above 0, or -1 for unlimited. 0 is refused: it could be meant as
// "nothing" or as "no limit".
type byteLimit int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *byteLimit) UnmarshalText(b []byte) error {
	v, err := parseBytes(string(b))
	if err == nil && v <= 0 && v != varve.Unlimited {
		err = fmt.Errorf("%s: want a number of bytes above 0, or -1 for unlimited", b)
	}
	*l = byteLimit(v)
	return err
}

// ageLimit is a duration above 0, or -1 for unlimited; 0 is refused.
type ageLimit time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *ageLimit) UnmarshalText(b []byte) error {
	if string(b) == "-1" {
		*l = varve.Unlimited
		return nil
	}
	d, err := time.ParseDuration(string(b))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: want a duration above 0, such as 24h, or -1 for unlimited", b)
	}
	*l = ageLimit(d)
	return nil
}

func parseBytes(s string) (int64, error) {
	number, unit := s, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n, ok := strings.CutSuffix(s, suffix); ok {
			number, unit = strings.TrimSpace(n), 1<<(10*(i+1))
		}
	}
	v, err := strconv.ParseInt(number, 10, 64)
	if err != nil || v > math.MaxInt64/unit || v < math.MinInt64/unit {
		return 0, fmt.Errorf("%q is no number of bytes (such as 1048576 or 1MiB)", s)
	}
	return v * unit, nil
}
