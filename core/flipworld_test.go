package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// place is a range of bytes of a file and what a flip there may lead to.
type place struct {
	pos, end   int64
	batch      bool // else derived, padding or a header: never an error
	base, last core.Offset
	tail       bool // of the last commit, above evidence: the log may end before it
}

// flipWorld is an image of a log that is opened again and again.
type flipWorld struct {
	cfg     core.Config
	files   []savedFile
	records int
	proven  core.Offset   // evidence: nothing below it may go
	seek    []core.Offset // read a batch at each of these, too, so that the index is used
	skim    bool          // only look offsets up where the open is clean: reading in order uses no index
	indexed int           // files that an index vouches for, without a flip
	plain   *rig          // holds the image; restored after each flip
	real    *rig          // opened for real; made anew for each flip
}

// verdict is how an open with a flipped bit and reading everything ended.
type verdict uint8

const (
	verdictAll     verdict = iota // every record, and the open saw nothing amiss
	verdictTorn                   // every record; something behind the end was taken as torn
	verdictAround                 // every record, another way: a footer, slot or header did not count
	verdictEnds                   // the log ends before its last commit
	verdictReader                 // the reader reported the damage
	verdictRefused                // the open reported the damage
	verdictCount
)

var verdictNames = [verdictCount]string{
	"all records", "all records, torn bytes behind them",
	"all records, another way", "ends before the last commit", "reader's typed error", "open refused, typed error",
}

type flipCounts [verdictCount]int

func (c *flipCounts) log(t *testing.T, what string, realOpens int) {
	t.Helper()
	text := ""
	for v, n := range c {
		if n > 0 {
			text += fmt.Sprintf("; %s %d", verdictNames[v], n)
		}
	}
	t.Logf("%s: real opens %d%s", what, realOpens, text)
}

func newFlipWorld(t *testing.T, cfg core.Config, files []savedFile, records int, proven core.Offset) *flipWorld {
	w := &flipWorld{cfg: cfg, files: files, records: records, proven: proven}
	w.plain, w.real = newRig(t), newRig(t)
	w.plain.restore(files)
	for _, r := range []*rig{w.plain, w.real} {
		r.now.Mono += 1 << 40
		r.now.Wall += 1 << 40
	}
	cfg.ReadOnly = true
	w.plain.start(cfg)
	w.indexed = indexed(w.plain)
	return w
}

// indexed returns how many files of earlier lives a footer or a sidecar vouches for.
func indexed(r *rig) (n int) {
	p := r.log.Plan()
	for i := range p.Files {
		if f := &p.Files[i]; f.Entry.ID.Owner() < p.Epoch && (f.Info.Sealed || f.Info.Sidecar) {
			n++
		}
	}
	return n
}

// duplicate sends the first batch again: its producer must be remembered, whatever index its
// record was read from.
func (w *flipWorld) duplicate(r *rig) error {
	if r.log.Phase() != core.Ready {
		return nil
	}
	b := numbered(0, 1, 8)
	b.Producer = core.Producer{ID: 0, Epoch: 1}
	if t, err := r.log.Append(r.now, &b); err != nil || !t.Duplicate || t.First != 0 {
		return fmt.Errorf("the first batch sent again: %+v, %w", t, err)
	}
	return nil
}

// places maps a file: where each batch lies, and the rest.
func (w *flipWorld) places(t *testing.T, f *savedFile) []place {
	base, id, kind, ok := segment.ParseName(f.name)
	size := int64(len(f.data))
	if !ok || kind != segment.NameSegment {
		return []place{{pos: 0, end: size}}
	}
	var s segment.Scanner
	src := segment.ScanFile{
		Source: bytesAt(f.data), Bytes: size, ID: id, Base: base, LogID: w.cfg.LogID, SectorBytes: 512,
	}
	if err := s.Start(&src); err != nil {
		t.Fatal(err)
	}
	var list []place
	at := int64(0)
	var b segment.Batch
	for {
		more, err := s.Next(&b)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		if at < b.Pos {
			list = append(list, place{pos: at, end: b.Pos})
		}
		at = b.Pos + int64(len(b.Raw))
		list = append(list, place{
			pos: b.Pos, end: at, batch: true, base: b.Identity.Base, last: b.Identity.End(),
			tail: b.Identity.Base >= w.proven,
		})
	}
	if at < size {
		list = append(list, place{pos: at, end: size})
	}
	return list
}

type bytesAt []byte

func (b bytesAt) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, b[off:])
	if n < len(p) {
		return n, errors.New("EOF")
	}
	return n, nil
}

// all flips every bit of one file.
func (w *flipWorld) all(t *testing.T, name string) (counts flipCounts) {
	t.Helper()
	at := -1
	for i := range w.files {
		if w.files[i].name == name {
			at = i
		}
	}
	if at < 0 {
		t.Fatalf("no file %s", name)
	}
	f := &w.files[at]
	realOpens, n := 0, 0
	for _, p := range w.places(t, f) {
		for pos := p.pos; pos < p.end; pos++ {
			for bit := range uint8(8) {
				v, err := w.flip(name, pos, bit, &p)
				if err != nil {
					t.Fatalf("%s, byte %d, bit %d (batch: %v, [%d, %d)): %v", name, pos, bit, p.batch, p.pos, p.end, err)
				}
				if n++; n%16 == 0 || v != verdictAll {
					realOpens++
					if err := w.flipReal(at, pos, bit, &p, v); err != nil {
						t.Fatalf("%s, byte %d, bit %d, real open after %q: %v", name, pos, bit, verdictNames[v], err)
					}
				}
				counts[v]++
			}
		}
	}
	counts.log(t, fmt.Sprintf("%s, %d bits", name, n), realOpens)
	return counts
}

// flip opens the image read-only with one bit flipped, and puts the bit back.
func (w *flipWorld) flip(name string, pos int64, bit uint8, p *place) (verdict, error) {
	r := w.plain
	if !r.disk.RotAt(name, pos, bit) {
		return 0, errors.New("no such byte")
	}
	cfg := w.cfg
	cfg.ReadOnly = true
	r.start(cfg)
	v, err := w.judge(r, name, pos, p)
	r.disk.RotAt(name, pos, bit)
	return v, err
}

// writes counts the calls that change anything.
func writes(d *faultfs.Disk) (n uint64) {
	c := d.Counts()
	for _, op := range []faultfs.Op{
		faultfs.OpCreate, faultfs.OpWrite, faultfs.OpZero, faultfs.OpTruncate,
		faultfs.OpSync, faultfs.OpSyncDir, faultfs.OpRename, faultfs.OpRemove, faultfs.OpMkdir,
	} {
		n += c.Calls[op]
	}
	return n
}

// flipReal opens a copy of the image for real and wants what the read-only open promised; where it
// opens, also that a second open finds the same.
func (w *flipWorld) flipReal(at int, pos int64, bit uint8, p *place, before verdict) error {
	r, data := w.real, w.files[at].data
	data[pos] ^= 1 << bit
	r.restore(w.files)
	data[pos] ^= 1 << bit
	for life := range 2 {
		r.start(w.cfg)
		v, err := w.judge(r, w.files[at].name, pos, p)
		if err == nil && v == verdictEnds && life == 0 && !r.log.Marks().Has(core.MarkTornTail) {
			err = errors.New("the log ends early without a mark")
		}
		if err != nil {
			return fmt.Errorf("open %d: %w", life+1, err)
		}
		switch {
		case life == 0 && v != before:
			return fmt.Errorf("it ends as %q", verdictNames[v])
		case v == verdictRefused && writes(r.disk) > 0:
			return errors.New("an open that refused wrote")
		case v == verdictRefused:
			return nil
		case (v == verdictEnds) != (before == verdictEnds):
			return fmt.Errorf("open %d ends as %q", life+1, verdictNames[v])
		}
		if text := r.disk.Violation(); text != "" {
			return errors.New(text)
		}
		r.kill()
	}
	return nil
}

// judge looks at an open that has come to rest, reads everything, and says what it amounts to.
func (w *flipWorld) judge(r *rig, name string, pos int64, p *place) (verdict, error) {
	switch r.log.Phase() {
	case core.Ready, core.Planned:
	default:
		return verdictRefused, named(r.log.Err(), name, pos, p)
	}
	if err := w.seeks(r, p); err != nil {
		return 0, err
	}
	if w.skim && r == w.plain && indexed(r) == w.indexed && len(r.log.Plan().Damage) == 0 && r.log.Committed() == core.Offset(w.records) {
		return verdictAll, nil
	}
	got, err := r.readUntil(0)
	for i, v := range got {
		if v != uint64(i) {
			return 0, fmt.Errorf("record %d reads as %d", i, v)
		}
	}
	m := r.log.Marks()
	switch {
	case err != nil:
		if err := named(err, name, pos, p); err != nil {
			return 0, err
		}
		if core.Offset(len(got)) > p.base {
			return 0, errors.New("records were served beyond the damage")
		}
		if core.Offset(len(got)) < p.base {
			return 0, fmt.Errorf("the reader stops at %d, the damage begins at %d", len(got), p.base)
		}
		return verdictReader, w.behind(r, p)
	case len(got) == w.records && m.Has(core.MarkTornTail):
		return verdictTorn, nil
	case len(got) == w.records && (m.Has(core.MarkSuperOneSlot) || m.Has(core.MarkHeaderByName) || indexed(r) != w.indexed):
		return verdictAround, w.duplicate(r)
	case len(got) == w.records:
		return verdictAll, w.duplicate(r)
	case p.tail && core.Offset(len(got)) == p.base:
		return verdictEnds, nil
	}
	return 0, fmt.Errorf("%d of %d records and no error", len(got), w.records)
}

// seeks reads single batches through the index, where no batch is damaged.
func (w *flipWorld) seeks(r *rig, p *place) error {
	if p.batch {
		return nil
	}
	for _, o := range w.seek {
		got, err := r.readSome(o, 1)
		if err != nil || len(got) == 0 || got[0] != uint64(o) {
			return fmt.Errorf("looking up offset %d gives %v, %w", o, got, err)
		}
	}
	return w.times(r)
}

// timeOf is the greatest time of a batch's records. It names where the batch ends, so that any
// answer about times can be judged.
func timeOf(end core.Offset) core.Time { return 1000 * end }

// times wants the times of each extent to bracket its records, and a look-up by time to start at or
// before the first record that is not older. Batches have up to three records.
func (w *flipWorld) times(r *rig) error {
	r.log.FillView(&r.view)
	for i := range r.view.Extents {
		x := &r.view.Extents[i]
		if x.MinTime > timeOf(x.First+3) || x.MaxTime < timeOf(x.End) {
			return fmt.Errorf("extent [%d, %d) has times [%d, %d]", x.First, x.End, x.MinTime, x.MaxTime)
		}
		for _, o := range w.seek {
			if o <= x.First || o > x.End {
				continue
			}
			_, base, err := r.store.OffsetForTime(x, r.view.LogID, timeOf(o), &r.handle)
			if err != nil || base >= o {
				return fmt.Errorf("looking up time %d gives offset %d, %w", timeOf(o), base, err)
			}
		}
	}
	return r.handle.Close()
}

// behind wants everything behind a damaged batch to be readable.
func (w *flipWorld) behind(r *rig, p *place) error {
	got, err := r.readUntil(p.last)
	if err != nil {
		return fmt.Errorf("behind the damage: %w", err)
	}
	if len(got) != w.records-int(p.last) {
		return fmt.Errorf("behind the damage: %d records of %d", len(got), w.records-int(p.last))
	}
	for i, v := range got {
		if v != uint64(p.last)+uint64(i) {
			return fmt.Errorf("behind the damage: record %d reads as %d", int(p.last)+i, v)
		}
	}
	return nil
}

// named wants a damage report of the right file, offset and position.
func named(err error, name string, pos int64, p *place) error {
	var c *core.CorruptError
	switch {
	case !errors.As(err, &c):
		return fmt.Errorf("not a report of damage: %w", err)
	case !p.batch:
		return fmt.Errorf("an error for bytes that are not a batch: %w", err)
	case c.Name() != name || c.Pos > pos || c.Pos <= p.pos-512 || c.Offset != p.base:
		return fmt.Errorf("the report names another place than batch [%d, %d) of offset %d: %w", p.pos, p.end, p.base, err)
	case !strings.Contains(err.Error(), name):
		return fmt.Errorf("the text does not name the file: %w", err)
	}
	return nil
}
