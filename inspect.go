package varve

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"varve/core"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/cold"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/warm"
)

// Inspection is what a look at a directory found: what recovery would keep, without recovering. It
// writes nothing and takes no lock that lasts, so it works beside a running writer; then it ends at
// the evidence, which no later crash can take back.
type Inspection struct {
	Plan *core.Plan
	View *core.View

	Start   int64           // first offset that can be read
	Proven  int64           // records below it are proven to be on the device
	End     int64           // records below it can be read now
	Running bool            // a writer has the directory open
	Super   core.FoundSuper // Spare is false where the log has none: without a free byte its next open waits for room

	// Refused is why Open would refuse the directory as it is, nil if it would not. What is before
	// the damage can be read all the same.
	Refused error
	// ColdDown is why the cold tier, though configured, could not be asked, nil if it was. Then only
	// what is on disk was found; an offset that is not is a *TierError.
	ColdDown error
	// WarmDown is the same of the warm tier. It is not asked while the cold tier does not answer.
	WarmDown error

	Exported int64         // records below it are in the cold tier, or below Start; -1: it could not be asked
	Cold     []core.Extent // what the cold tier holds, in order, on disk as well or not

	WarmFrom, WarmEnd int64         // the warm tier holds [WarmFrom, WarmEnd)
	WarmBytes         int64         // in entries of so many bytes
	WarmAlone         []core.Extent // what it alone holds: the next open copies it to the disk; until then reading it is a *TierError

	store   *disk.Store
	cold    *cold.Store // nil: there is no cold tier
	fsys    disk.FS
	options InspectOptions
	core    *core.Log            // planned; it decides where what is found damaged is read
	mu      sync.Mutex           // guards core
	later   atomic.Pointer[seen] // what was seen since, when a file was found gone or damaged; nil: nothing yet
}

// seen is what a later look at the directory saw.
type seen struct {
	view *core.View
	end  int64
}

// InspectOptions say how closely to look.
type InspectOptions struct {
	Deep         bool // verify every batch, even where a footer vouches for a file
	ChecksumTail bool // treat a last batch with a wrong payload checksum as torn

	Cold       tiers.Bucket // as in Options; nothing is written to it
	ColdPrefix string
	Warm       WarmOptions // Dialer and Name, as in Options; nothing is written to it

	Logger *slog.Logger // told of a tier that is long in answering; default: nobody is

	repair bool // plan as a repair does
}

// Beside a running writer, directory, superblock and files are read at different moments and may
// not fit each other. A look that failed or found damage is begun anew after a pause, until two in a
// row say the same, or so often.
const (
	inspectTries = 10
	inspectPause = 10 * time.Millisecond
)

// Inspect looks at the log in a directory and in its cold tier. Damage does not fail it: the view
// marks what cannot be served, and reading it is a *CorruptError. What recovery would refuse is an
// error. With a cold tier the directory may be absent.
func Inspect(ctx context.Context, dir string, o InspectOptions) (*Inspection, error) {
	return InspectFS(ctx, osfs.New(dir), dir, writerRunning(dir), o)
}

// InspectFS is Inspect over any file system; running says that a writer has it open.
func InspectFS(ctx context.Context, fsys disk.FS, name string, running bool, o InspectOptions) (*Inspection, error) {
	var last *CorruptError
	for try := 1; ; try++ {
		x, err := inspectTwice(ctx, fsys, running, o)
		var damage *CorruptError
		switch {
		case err != nil:
			err = fmt.Errorf("%s: %w", name, err)
		case x.Refused == nil:
			return x, nil
		case errors.As(x.Refused, &damage) && last != nil && *damage == *last:
			return x, nil
		}
		if !running || try == inspectTries {
			return x, err
		}
		last = damage
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(inspectPause):
		}
	}
}

// inspectTwice looks, and where a damaged last batch refuses to be planned for, looks at what is
// before it.
func inspectTwice(ctx context.Context, fsys disk.FS, running bool, o InspectOptions) (*Inspection, error) {
	x, err := inspectOnce(ctx, fsys, running, o)
	var refused *CorruptError
	if errors.As(err, &refused) && !o.ChecksumTail {
		o.ChecksumTail = true
		if x, err = inspectOnce(ctx, fsys, running, o); err == nil {
			x.Refused = refused
		}
	}
	if err == nil && len(x.Plan.Damage) > 0 && x.Refused == nil && !o.repair {
		x.Refused = &x.Plan.Damage[0]
	}
	return x, err
}

func inspectOnce(ctx context.Context, fsys disk.FS, running bool, o InspectOptions) (*Inspection, error) {
	opt := Options{
		VerifyAllOnOpen: o.Deep, RepairChecksumTail: o.ChecksumTail, AllowDamaged: true, Cold: o.Cold, ColdPrefix: o.ColdPrefix,
		Warm: o.Warm,
	}
	cfg := opt.config()
	if err := opt.validate(&cfg); err != nil {
		return nil, err
	}
	cfg.ReadOnly, cfg.Repair = true, o.repair
	began := time.Now()
	now := func() core.Now {
		t := time.Now()
		return core.Now{Mono: int64(t.Sub(began)), Wall: t.UnixNano()}
	}
	l, err := core.Open(cfg, now())
	if err != nil {
		return nil, err
	}
	x := &Inspection{store: disk.NewStore(fsys), fsys: fsys, options: o, Running: running, core: l}
	defer x.store.Close() //nolint:errcheck // nothing was written; fetches open files of their own
	if o.Cold != nil {
		x.cold = cold.NewStore(o.Cold, o.ColdPrefix, x.store, opt.coldOptions())
		x.store.SetObjects(x.cold)
		defer context.AfterFunc(ctx, x.cold.Close)()
	}
	var asked *warm.Store
	if o.Warm.Dialer != nil {
		var links *links
		if asked, links, err = o.Warm.open(x.store, &cfg); err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, links.cut)
		defer func() { stop(); _ = asked.Close() }()
	}
	for l.Phase() == core.Opening {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e := l.Next(now(), core.Hot); e != nil {
			l.Complete(now(), e, x.store.Run(e))
			continue
		}
		if e := l.Next(now(), core.Catalogue); e != nil {
			l.Complete(now(), e, o.ask(ctx, "cold", e, x.cold.Run))
			continue
		}
		if e := l.Next(now(), core.Warm); e != nil {
			l.Complete(now(), e, o.ask(ctx, "warm", e, asked.Run))
			continue
		}
		at, waits := l.Deadline()
		if !waits {
			return nil, fmt.Errorf("varve: inspection stands still in phase %v", l.Phase())
		}
		select {
		case <-time.After(time.Duration(at - now().Mono)):
			l.Tick(now())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if l.Phase() != core.Planned {
		return nil, l.Err()
	}
	x.Plan, x.View, x.Super = l.Plan(), new(core.View), *l.Found()
	if x.Plan.New {
		return nil, &RefusedError{Why: "it holds no log", Next: "name the directory of a log"}
	}
	l.FillView(x.View)
	x.Exported, x.Cold = l.Exported(), l.ColdExtents(nil)
	x.foundWarm(l)
	if x.ColdDown != nil {
		x.Exported = -1
	}
	x.Start, x.Proven, x.End = l.Start(), l.Frontier(), l.End()
	if running {
		x.End = max(x.Proven, x.Start)
	}
	return x, nil
}

// foundWarm takes over what was found of the warm tier, and which tier did not answer.
func (x *Inspection) foundWarm(l *core.Log) {
	s := l.Stats()
	if x.WarmDown = s.WarmError; s.WarmError == nil {
		x.ColdDown = l.Err()
	}
	x.WarmFrom, x.WarmEnd, x.WarmBytes = s.WarmFrom, s.WarmEnd, s.WarmBytes
	for i := range x.View.Extents {
		if e := &x.View.Extents[i]; e.Tier == core.TierWarm {
			x.WarmAlone = append(x.WarmAlone, *e)
		}
	}
}

// lookWait bounds how long an open or a look waits for one answer of the bucket: what is on disk is served, or
// shown, without it.
var lookWait = 6 * time.Second

// ask runs an effect of another tier than the disk, and asks one that answers with an error once more.
func (o *InspectOptions) ask(ctx context.Context, tier string, e core.Effect, run func(core.Effect) error) error {
	if o.Logger != nil {
		slow := time.AfterFunc(tierSlow, func() {
			o.Logger.Warn("varve: the " + tier + " tier has not answered yet; what is on disk is shown without it soon")
		})
		defer slow.Stop()
	}
	err := run(e)
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	select {
	case <-time.After(askPause):
		*e.Result() = core.Result{FreeBytes: -1}
		return run(e)
	case <-ctx.Done():
		return err
	}
}

const askPause = 100 * time.Millisecond

// Kept counts the records in [Start, End) that can be read.
func (x *Inspection) Kept() int64 {
	n := int64(0)
	for i := range x.View.Extents {
		if e := &x.View.Extents[i]; e.Damage == segment.BreakNone {
			n += max(0, min(e.End, x.End)-max(e.First, x.Start))
		}
	}
	return n
}

// NewReader returns a reader of what was found. Its Next ends with ErrOutOfRange behind the end
// that was found.
func (x *Inspection) NewReader(from Position, o ReadOptions) *Reader { return newReader(x, from, o) }

// Records yields the records from a position to the end that was found; an error is yielded last.
func (x *Inspection) Records(ctx context.Context, from Position) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		x.NewReader(from, ReadOptions{}).records(ctx, x.End, yield)
	}
}

// OffsetAt is Log.OffsetAt for what was found.
func (x *Inspection) OffsetAt(ctx context.Context, t time.Time) (Position, error) {
	return offsetAt(ctx, x, 0, t)
}

// Slots returns what is wrong with each superblock slot that is there and does not verify.
func (x *Inspection) Slots() []string {
	var problems []string
	for i, err := range x.Super.Problems {
		if err != nil {
			problems = append(problems, fmt.Sprintf("super.%d: %v", i, err))
		}
	}
	return problems
}

func (x *Inspection) look() (int64, *core.View, error) {
	if y := x.later.Load(); y != nil {
		return y.end, y.view, nil
	}
	return x.End, x.View, nil
}

// fetch looks at the directory again where a file is gone: a writer may have trimmed or replaced it
// since. It is damage only if what is there now still promises it.
func (x *Inspection) fetch(f *core.Fetch, h *disk.Handle) error {
	err := x.store.Fetch(f, h)
	if f.Missing {
		x.lookAgain()
	}
	return err
}

// lookAgain takes a new view; a look that meets the writer in the middle of a removal is tried anew.
func (x *Inspection) lookAgain() {
	o := x.options
	o.Deep = false // what is read is verified anyway
	if x.Running { // what the warm tier holds is on its disk
		o.Warm = WarmOptions{}
	}
	for try := 1; ; try++ {
		y, err := inspectOnce(context.Background(), x.fsys, x.Running, o)
		if err == nil {
			x.mu.Lock()
			x.core = y.core
			x.later.Store(&seen{view: y.View, end: min(x.End, y.Plan.End)})
			x.mu.Unlock()
			return
		}
		if try == inspectTries {
			return
		}
		time.Sleep(inspectPause)
	}
}

func (x *Inspection) startAt(e *core.Extent, log segment.LogID, t int64, h *disk.Handle) int64 {
	return startInFile(x.store, e, log, t, h)
}

// damaged reads what is damaged on disk from the cold tier, where that holds it.
func (x *Inspection) damaged(d *CorruptError) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, now, _ := x.look() // never fails
	x.core.Damaged(core.Now{}, d)
	if x.core.ViewVersion() == now.Version {
		return
	}
	v := new(core.View)
	x.core.FillView(v)
	end, _, _ := x.look() // never fails
	x.later.Store(&seen{view: v, end: end})
}

func (x *Inspection) awaitMore(context.Context, int64) error { return ErrOutOfRange }
