package varve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"varve/core"
	"varve/core/segment"
	"varve/tiers/cold"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/warm"
)

// lockName is the file whose lock says that the directory is in use.
const lockName = "lock"

// Log is an open log. Its methods may be called from any goroutine.
type Log struct {
	fs     disk.FS
	name   string // of the directory, for messages
	store  *disk.Store
	cold   *cold.Store // nil: there is no cold tier
	warm   *warm.Store // nil: there is no warm tier
	links  *links      // of warm
	lock   io.Closer
	logger *slog.Logger
	began  time.Time // zero of the monotonic clock

	// Published for readers, which never take the mutex while there is something to read.
	// committed is loaded before view: the view then covers what is below it.
	committed atomic.Int64
	view      atomic.Pointer[core.View]
	shut      atomic.Bool // Close has begun: readers end

	reads [core.TierCount]atomic.Int64 // bytes that readers got, by tier

	gathering atomic.Int32 // batches that joined since the last cut
	expected  atomic.Int32 // batches that had an outcome together, and those that waited already: so many are likely to come

	watchers watchers // told when watermarks, view or phase change

	mu      sync.Mutex // guards the core and everything below
	core    *core.Log
	lanes   [core.LaneCount]lane
	cohorts cohorts
	handed  woken // by a caller that led, to the Tail goroutine with the lane
	phase   core.Phase
	moved   chan struct{} // made by whoever waits; closed when watermarks, view or phase change
	timer   *time.Timer
	latest  core.Time // Mono time that the core has seen
	armed   core.Time // Mono time for which the timer is set; 0: not set
	stopped bool
	kafka   bool      // the log holds RecordBatches: it takes no records of another kind
	asked   core.Time // Mono; since when tiers that an open asks gave no answer that was of use; 0: they did

	damages   map[string]time.Duration // when each was logged
	coldFails int                      // completions in a row after which the cold tier had not answered
	warmFails warmReport               // what was logged of the warm tier

	lanesDone sync.WaitGroup
	idle      chan struct{} // closed when the core is closed and no effect is in flight
	release   sync.Once
	released  chan struct{} // closed when files and lock are given back
}

// Open opens the log in a directory, which is made if it is missing; an absent or empty one becomes
// a new log. It recovers what an earlier life left, and returns when the log can be read and
// appended to. Open holds a lock on the directory: a second Open is ErrInUse. An Open that fails
// leaves nothing behind, neither files nor goroutines. Errors: *RefusedError, *CorruptError,
// *LostSuffixError, *IOError, ErrInUse, the context's.
func Open(ctx context.Context, dir string, o Options) (*Log, error) {
	if dir == "" { // and not the one that the process is in
		return nil, errors.New("varve: open: the name of the directory is empty")
	}
	absent := absentDirs(dir)
	l, err := OpenFS(ctx, osfs.New(dir), dir, o)
	if err != nil {
		for _, d := range absent {
			_ = os.Remove(d) // only if it is empty
		}
	}
	return l, err
}

// absentDirs returns the directories on the way to dir that are not there, dir first.
func absentDirs(dir string) (absent []string) {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			return absent
		}
		absent = append(absent, dir)
	}
}

// OpenFS is Open over any file system; name is what messages call the directory.
func OpenFS(ctx context.Context, fs disk.FS, name string, o Options) (*Log, error) {
	return openConfig(ctx, fs, name, o.config(), &o)
}

func openConfig(ctx context.Context, fs disk.FS, name string, cfg core.Config, o *Options) (*Log, error) {
	if err := o.validate(&cfg); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lock, undo, err := takeLock(ctx, fs, name)
	if err != nil {
		return nil, err
	}
	l := &Log{
		fs: fs, name: name, lock: lock, logger: o.Logger, began: time.Now(),
		store: disk.NewStore(fs),
		idle:  make(chan struct{}), released: make(chan struct{}),
	}
	l.cohorts.budget = o.Budget
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	if o.Cold != nil {
		l.cold = cold.NewStore(o.Cold, o.ColdPrefix, l.store, o.coldOptions())
		l.store.SetObjects(l.cold)
	}
	if o.Warm.Dialer != nil {
		if l.warm, l.links, err = o.Warm.open(l.store, &cfg); err != nil {
			undo()
			return nil, err
		}
		l.store.SetStreams(l.warm)
		l.warmFails.waives = cfg.WarmAckOnTimeout
	}
	l.kafka = NewestKind(fs) == KindKafka
	if l.core, err = core.Open(cfg, l.now()); err != nil {
		undo()
		return nil, err
	}
	l.start()
	if err := l.awaitOpen(ctx, o.TierWait); err != nil {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), openGrace)
		defer cancel()
		if l.cold != nil {
			l.cold.Close() // a bucket that hangs would hold the directory
		}
		_ = l.shutdown(grace, undo)
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, w := range cfg.Warnings() {
		l.logger.Warn("varve: "+w, "dir", name)
	}
	l.report()
	return l, nil
}

// openGrace is how long a failed Open waits for the disk to answer; after that, what is in flight
// ends, and gives the directory back, on its own.
const openGrace = 2 * time.Second

// takeLock locks the directory. undo gives the lock back and leaves nothing that was not there.
func takeLock(ctx context.Context, fs disk.FS, name string) (lock io.Closer, undo func(), err error) {
	had, missing := false, false
	entries, err := fs.List(nil)
	switch {
	case errors.Is(err, disk.ErrNotExist):
		missing = true
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, e := range entries {
		had = had || e.Name == lockName
	}
	if missing {
		if err := fs.Mkdir(disk.DirLog); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	// Tools that look whether a writer is running hold the lock for a moment.
	for try := 0; ; try++ {
		if lock, err = fs.Lock(lockName); err == nil || !errors.Is(err, disk.ErrLocked) || try == lockTries {
			break
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
	var held *disk.LockedError
	switch {
	case errors.As(err, &held):
		return nil, nil, fmt.Errorf("%s: %w (%s)", name, ErrInUse, held.Owner)
	case errors.Is(err, disk.ErrLocked):
		return nil, nil, fmt.Errorf("%s: %w", name, ErrInUse)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	undo = func() {
		if !had { // ours, and still locked: nobody else can be behind it
			_ = fs.Remove(lockName)
		}
		_ = lock.Close()
	}
	return lock, undo, nil
}

const (
	lockTries = 4
	lockPause = 5 * time.Millisecond
)

var errSlotMissing = errors.New("it is missing")

// report logs what recovery found.
func (l *Log) report() {
	s := l.Stats()
	l.mu.Lock()
	unknown := slices.Clone(l.core.Plan().Unknown)
	void, from := voidFiles(l.core.Plan())
	found := *l.core.Found()
	l.mu.Unlock()
	if len(void) > 0 {
		l.logger.Warn("varve: a later owner of the log has gone on without the records of these files: they are not served, and kept until retention removes them",
			"dir", l.name, "from", from, "files", void)
	}
	for i := range found.Valid {
		if found.Winner >= 0 && !found.Valid[i] {
			cause := cmp.Or(found.Problems[i], errSlotMissing)
			l.logger.Warn("varve: one of the two copies of the superblock is not whole; it was written anew; if it was the newer one, records that it alone proved may be missing at the end",
				"dir", l.name, "slot", i, "error", cause)
		}
	}
	if len(unknown) > 0 {
		l.logger.Warn("varve: files that are not the log's are left alone", "dir", l.name, "files", unknown)
	}
	if s.NoSpare {
		l.logger.Warn("varve: the spare of the superblock could not be made: without a free byte the next open has to wait for room", "dir", l.name)
	}
	l.logger.Info("varve: log is open", "dir", l.name, "start", s.Start, "committed", s.Committed, "epoch", s.Epoch,
		"recovery", s.Recovery, "torn_bytes", s.TornBytes, "rescued_bytes", s.RescuedBytes)
}

// voidFiles returns the files of which nothing is served, and the first offset in them.
func voidFiles(p *core.Plan) (names []string, from int64) {
	for i := range p.Files {
		if f := &p.Files[i]; f.Fate == core.FateVoid {
			if len(names) == 0 || f.Entry.Base < from {
				from = f.Entry.Base
			}
			names = append(names, segment.Name(f.Entry.Base, f.Entry.ID))
		}
	}
	return names, from
}

// Close ends the log: what is pending is committed, the active segment sealed, the directory given
// back. It returns when that is done, or with the context's error; the closing then goes on, and
// Close may be called again to wait for it. Readers end with ErrClosed. An error says that the log
// did not close cleanly: what was acked is safe, and the next Open recovers.
func (l *Log) Close(ctx context.Context) error {
	return l.shutdown(ctx, func() { _ = l.lock.Close() })
}

func (l *Log) shutdown(ctx context.Context, unlock func()) error {
	l.shut.Store(true)
	now := l.enter()
	l.core.Close(now)
	l.settle(now)
	l.release.Do(func() {
		go func() {
			<-l.idle
			l.lanesDone.Wait()
			l.store.Close()
			if l.cold != nil {
				l.cold.Close()
			}
			if l.warm != nil {
				_ = l.warm.Close() // nothing is left to be said
			}
			unlock()
			close(l.released)
		}()
	})
	select {
	case <-l.released:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.core.Err(); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// Trim gives up all records below an offset, for good: when it returns, no reader sees them and no
// later life brings them back. Files go when all their records are below it. before may be at most
// Committed: else ErrOutOfRange.
func (l *Log) Trim(ctx context.Context, before int64) error {
	now := l.enter()
	err := l.core.Trim(now, before)
	l.settle(now)
	if err != nil {
		return err
	}
	return l.await(ctx, func() (bool, error) { return l.core.Start() >= before, l.ended() })
}

// Export copies records below an offset to the cold tier, and leaves their files where they are: the
// segment that holds the last of them is sealed for it. It returns when the cold tier has them, so that
// losing the disk does not lose them. Close does not wait for that; what is sealed is uploaded while the
// log is open. before may be at most Committed: else ErrOutOfRange. Without a cold tier: ErrNoColdTier.
func (l *Log) Export(ctx context.Context, before int64) error {
	now := l.enter()
	err := l.core.Export(now, before)
	l.settle(now)
	if err != nil {
		return err
	}
	return l.await(ctx, func() (bool, error) { return l.core.Exported() >= before, l.ended() })
}

// Offload moves records below an offset to the cold tier, and their files off the local disk: whole
// files go, those that reach beyond the offset stay. It returns when that is done. before may be at
// most Committed: else ErrOutOfRange. Without a cold tier: ErrNoColdTier. Where the object of a file's
// records is gone from the bucket, or not whole, the file stays and the error is a *CorruptError.
func (l *Log) Offload(ctx context.Context, before int64) error {
	now := l.enter()
	was, _ := l.core.Misses()
	err := l.core.Offload(now, before)
	l.settle(now)
	if err != nil {
		return err
	}
	return l.await(ctx, func() (bool, error) {
		n, missed := l.core.Misses()
		if n <= was { // not by a look since
			missed = nil
		}
		return l.core.Offloaded(before), cmp.Or(l.ended(), missed)
	})
}

// Roll seals the active segment, so that its file is complete and will not change any more. It
// returns when that is done; with no active segment, or an empty one, at once.
func (l *Log) Roll(ctx context.Context) error {
	now := l.enter()
	active := l.activeSegment()
	err := l.core.Roll(now)
	l.settle(now)
	if err != nil || active == nil {
		return err
	}
	id, first := active.Segment, active.First
	return l.await(ctx, func() (bool, error) {
		a := l.activeSegment()
		return a == nil || a.Segment != id || l.core.End() == first, l.ended()
	})
}

// activeSegment returns the extent that appends go to, nil if there is none. The mutex is held.
func (l *Log) activeSegment() *core.Extent {
	v := l.view.Load()
	if n := len(v.Extents); n > 0 && v.Extents[n-1].End == core.EndNone {
		return &v.Extents[n-1]
	}
	return nil
}

// ended returns why nothing will move any more, nil while it may. The mutex is held.
func (l *Log) ended() error {
	switch l.phase {
	case core.Poisoned:
		return fmt.Errorf("%w: %w", ErrPoisoned, l.core.Err())
	case core.Closed, core.Failed:
		return ErrClosed
	}
	return nil
}

// Committed returns the offset at which readers stop now.
func (l *Log) Committed() int64 { return l.committed.Load() }

// Start returns the first offset that can be read.
func (l *Log) Start() int64 { return l.view.Load().Start }

// Err returns why the log was poisoned or failed, nil while all is well.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.core.Err()
}

// Phase returns where the log stands. While it is core.Recovering it waits for a tier, or for free space, to know all
// that it holds: until it does, Committed is what is proven, and may be below what was acked, and read, in an earlier
// life.
func (l *Log) Phase() core.Phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase
}

// Epoch returns the epoch that new records get. It rises, if at all, while the log is recovering: a tier may know
// of a later one than the disk.
func (l *Log) Epoch() uint64 { return uint64(l.view.Load().Epoch) }

// Stats are counters since Open, and gauges.
type Stats struct {
	core.Stats
	Start, Frontier, Committed, End int64
	Epoch                           uint64
	Phase                           string
	Recovery                        time.Duration
	ReadBytes                       [core.TierCount]int64 // that readers got from each tier
	ColdTakenBytes                  int64                 // of uploads, those that failed later with them
}

// Stats returns counters and gauges.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{
		Stats: l.core.Stats(),
		Start: l.core.Start(), Frontier: l.core.Frontier(), Committed: l.core.Committed(), End: l.core.End(),
		Epoch: uint64(l.core.Epoch()), Phase: l.phase.String(),
	}
	s.Recovery = time.Duration(s.RecoveredAt)
	if l.cold != nil {
		s.ColdTakenBytes = l.cold.Taken()
	}
	for i := range l.reads {
		s.ReadBytes[i] = l.reads[i].Load()
	}
	return s
}
