package varve

import (
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"strings"
	"time"

	"varve/core"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/cold"
)

// FsyncMode is when an append counts as durable.
type FsyncMode = segment.SyncMode

// Fsync modes.
const (
	OnCommit = segment.OnCommit // an ack means on the device (default)
	Periodic = segment.Periodic // an ack means in the page cache; synced every FsyncInterval
	None     = segment.NoSync   // an ack means in the page cache; synced when a segment is sealed
)

// Unlimited is the value of a retention limit or of SegmentAge that switches it off.
const Unlimited = core.Unlimited

// Options configure a log. The zero value of every field is its default.
type Options struct {
	Fsync         FsyncMode
	FsyncInterval time.Duration // Periodic only; default 250 ms, at least 1 ms

	SegmentBytes      int64         // a segment file rolls at this size; default 256 MiB
	SegmentAge        time.Duration // and at this age; default 24 h, or Unlimited
	IndexSpacingBytes int64         // one index entry for so many bytes; default 4096
	MaxBatchBytes     int64         // payload of one batch; default 16 MiB, at most 1 GiB
	PendingBytes      int64         // accepted and not yet written; default 64 MiB
	Budget            *Budget       // of PendingBytes over several logs; nil: each has its own
	MinFreeBytes      int64         // appends answer ErrNoSpace below it; default 256 MiB, negative: 0
	NoPreallocate     bool          // do not zero-fill ahead of the tail (slower syncs, smaller files)
	PreallocateBytes  int64         // least step of that, which follows the traffic of a second; default 1 MiB

	// Retention removes whole segments from the head, never the active one: those above an age, and
	// those without which at least this many bytes stay. Default Unlimited.
	RetentionBytes         int64
	RetentionAge           time.Duration
	LocalRetentionBytes    int64
	LocalRetentionAge      time.Duration
	RetentionCheckInterval time.Duration // between checks; the first one is made at Open; default 60 s

	ProducersMax int // idempotent producers remembered; default 4096

	VerifyAllOnOpen    bool // verify every batch at open, even where a footer vouches for the file
	RepairChecksumTail bool // treat a last batch with a wrong payload checksum as torn
	AllowDamaged       bool // open in spite of damage and serve everything else

	// Cold is the bucket of the cold tier, nil for none: sealed segments become objects there, under
	// ColdPrefix, which belongs to this log alone. An empty directory is then rebuilt from the bucket;
	// a new log, where the bucket holds none either, needs Create.
	Cold             tiers.Bucket
	ColdPrefix       string        // "" or a key that ends in a slash
	ColdPartBytes    int64         // objects larger than this are written in parts of this size; default 8 MiB
	ColdMaxUploadAge time.Duration // an active segment older than this is sealed and exported; default Unlimited

	// Warm is the warm tier: what was appended is mirrored there before it is acked. An empty directory
	// is then rebuilt from it, and from the bucket where there is one.
	Warm WarmOptions

	// TierWait is how long Open waits for a tier that has to be asked first and gives no answer that is of use;
	// then it ends with ErrTierDown. Default: as long as its context says.
	TierWait time.Duration

	Create     bool // begin a new log where neither directory nor a tier holds one
	Existing   bool // never begin one: refuse an absent or empty directory, without tiers as well
	AcceptLoss bool // open although records are in no tier: Start moves behind them

	Logger *slog.Logger // default: nothing is logged
}

// Validate names the first option whose value cannot work, as Open does.
func (o *Options) Validate() error {
	c := o.config()
	return o.validate(&c)
}

// Warnings names combinations of options that work, but keep more than somebody may have meant. Open
// logs them.
func (o *Options) Warnings() []string {
	c := o.config()
	return c.Warnings()
}

// coldOptions translates options into the cold store's numbers.
func (o *Options) coldOptions() cold.Options {
	c := cold.DefaultOptions()
	c.AskTimeout = lookWait
	if o.ColdPartBytes != 0 {
		c.PartBytes = int(o.ColdPartBytes)
	}
	return c
}

// validate names the first option whose value cannot work. c is what config makes of the options.
func (o *Options) validate(c *core.Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if err := o.Warm.validate(c); err != nil {
		return err
	}
	switch {
	case o.ColdPartBytes != 0 && (o.ColdPartBytes < tiers.PartBytesMin || o.ColdPartBytes > partBytesMax):
		return &core.ConfigError{Key: "cold.part_bytes", Value: o.ColdPartBytes, Want: "5 MiB to 5 GiB"}
	case o.Cold == nil:
		return nil
	case o.ColdPrefix != "" && !strings.HasSuffix(o.ColdPrefix, "/"):
		return &core.ConfigError{Key: "cold prefix", Value: o.ColdPrefix, Want: "empty, or a key that ends in a slash"}
	}
	if err := tiers.CheckPrefix(o.ColdPrefix); err != nil {
		return &core.ConfigError{Key: "cold prefix", Value: o.ColdPrefix, Want: err.Error()}
	}
	return nil
}

// partBytesMax is S3's limit.
const partBytesMax = 5 << 30

// config translates options into the core's numbers.
func (o *Options) config() core.Config {
	c := core.DefaultConfig()
	c.Sync = o.Fsync
	set(&c.SyncInterval, int64(o.FsyncInterval))
	set(&c.SegmentBytes, o.SegmentBytes)
	set(&c.SegmentAge, int64(o.SegmentAge))
	set(&c.IndexSpacingBytes, o.IndexSpacingBytes)
	set(&c.MaxBatchBytes, o.MaxBatchBytes)
	set(&c.PendingBytes, o.PendingBytes)
	set(&c.MinFreeBytes, o.MinFreeBytes)
	c.MinFreeBytes = max(c.MinFreeBytes, 0)
	c.Preallocate = !o.NoPreallocate
	set(&c.PrepareBytes, o.PreallocateBytes)
	set(&c.RetentionBytes, o.RetentionBytes)
	set(&c.RetentionAge, int64(o.RetentionAge))
	set(&c.LocalRetentionBytes, o.LocalRetentionBytes)
	set(&c.LocalRetentionAge, int64(o.LocalRetentionAge))
	set(&c.RetentionCheckInterval, int64(o.RetentionCheckInterval))
	set(&c.ProducersMax, o.ProducersMax)
	c.VerifyAllOnOpen, c.RepairChecksumTail, c.AllowDamaged = o.VerifyAllOnOpen, o.RepairChecksumTail, o.AllowDamaged
	c.Cold, c.Create, c.Existing, c.AcceptLoss = o.Cold != nil, o.Create && !o.Existing, o.Existing, o.AcceptLoss
	set(&c.ColdMaxUploadAge, int64(o.ColdMaxUploadAge))
	o.Warm.config(&c)
	if o.MaxBatchBytes != 0 && o.PendingBytes == 0 {
		c.PendingBytes = max(c.PendingBytes, c.MaxBatchBytes)
	}
	var b [24]byte
	_, _ = rand.Read(b[:]) // never fails
	copy(c.LogID[:], b[:16])
	c.Nonce = binary.LittleEndian.Uint64(b[16:])
	return c
}

func set[T int | int64](to *T, v T) {
	if v != 0 {
		*to = v
	}
}
