package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"varve/core/segment"
)

// This file sets reconcile against a reference that knows no extent and no walk over files: for each
// offset alone it says who serves it, then counts up to the first offset where that matters.

// facts is a directory as a scan found it: the superblock, and of each file what is in it.
type facts struct {
	super segment.Superblock
	cfg   Config
	files []fact
}

type fact struct {
	entry FileEntry
	info  segment.FileInfo // scanned batch by batch
	quick bool             // vouched for by its footer until somebody asks
}

func (f *fact) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %x base %d epoch %d end %d ev %d verdict %d quick %v",
		[...]string{"", "created", "replacement", "lost"}[f.info.Header.Kind], uint64(f.entry.ID), f.entry.Base, f.info.Epoch,
		f.info.Header.End, f.info.Evidence, f.info.Verdict, f.quick)
	if f.info.Head != segment.BreakNone {
		fmt.Fprintf(&b, " head %d", f.info.Head)
	}
	for i := range f.info.Runs {
		r := &f.info.Runs[i]
		fmt.Fprintf(&b, " [%d,%d) break %d", r.First, r.End, r.Break)
	}
	return b.String()
}

const offsetsMost = 14

func number(t *rapid.T, low, high Offset, what string) Offset {
	return rapid.Int64Range(low, max(low, high)).Draw(t, what)
}

// drawFacts draws a directory that lives of one log may have left, with anything damaged or missing.
func drawFacts(t *rapid.T) *facts {
	w := &facts{cfg: DefaultConfig()}
	s := &w.super
	*s = segment.Superblock{Sequence: 1, SectorBytes: 512, Sync: drawSync(t)}
	w.cfg.AllowDamaged, w.cfg.RepairChecksumTail = rapid.Bool().Draw(t, "allow damaged"), rapid.Bool().Draw(t, "repair checksum tail")
	epoch, first := Epoch(0), Offset(0)
	for n := range rapid.IntRange(1, 3).Draw(t, "lives") {
		epoch += Epoch(rapid.IntRange(1, 2).Draw(t, "epoch"))
		if n > 0 {
			first = number(t, first, offsetsMost, "first")
		}
		s.Lineage = append(s.Lineage, segment.Lineage{Epoch: epoch, First: first})
	}
	s.Epoch = epoch + Epoch(rapid.IntRange(0, 1).Draw(t, "incomplete open"))
	s.HotStart = number(t, 0, 4, "hot start")
	s.Start = number(t, s.HotStart, s.HotStart+3, "start")
	s.Frontier = number(t, s.Start, offsetsMost, "frontier")
	for n := range rapid.IntRange(0, 6).Draw(t, "files") {
		w.files = append(w.files, drawFact(t, w, uint32(n+1)))
	}
	return w
}

func drawSync(t *rapid.T) segment.SyncMode {
	return segment.SyncMode(rapid.IntRange(0, 2).Draw(t, "sync"))
}

func drawFact(t *rapid.T, w *facts, n uint32) fact {
	s := &w.super
	last := s.Lineage[len(s.Lineage)-1].Epoch
	owner := rapid.Uint32Range(1, last).Draw(t, "owner")
	h := segment.Header{Kind: segment.Created, SectorBytes: 512, Sync: drawSync(t), Epoch: owner}
	h.Base = number(t, 0, offsetsMost, "base")
	if i := slices.IndexFunc(s.Lineage, func(l segment.Lineage) bool { return l.Epoch == owner }); i >= 0 {
		h.Base = max(h.Base, s.Lineage[i].First) // a life writes behind what it recovered
	}
	if s.Epoch > owner && rapid.IntRange(0, 2).Draw(t, "kind") == 0 { // by an open of a later life
		h.Kind, h.End = segment.Replacement, h.Base+number(t, 1, 6, "span")
		owner = rapid.Uint32Range(owner+1, s.Epoch).Draw(t, "opener")
		if rapid.IntRange(0, 5).Draw(t, "lost") == 0 {
			h.Kind = segment.Lost
		}
	}
	h.ID = segment.MakeID(owner, n)
	f := fact{entry: FileEntry{ID: h.ID, Base: h.Base}}
	f.info = segment.FileInfo{Header: h, Scanned: true, Epoch: h.Epoch, HeadPos: 512}
	limit := Offset(offsetsMost + 2)
	if h.Kind != segment.Created {
		limit = h.End
	}
	if h.Kind != segment.Lost {
		drawRuns(t, &f, limit)
	}
	if len(f.info.Runs) == 0 {
		f.info.Epoch = 0
	}
	one := len(f.info.Runs) == 1 && f.info.Head == segment.BreakNone && f.info.Runs[0].Break == segment.BreakNone
	f.quick = one && rapid.Bool().Draw(t, "sealed")
	if h.Kind == segment.Created && !f.quick && rapid.IntRange(0, 8).Draw(t, "header damaged") == 0 && len(f.info.Runs) > 0 {
		f.info.Verdict = segment.HeaderDamaged
	}
	return f
}

// drawRuns draws what verifies in a file: runs with breaks between, a frontier that is above none of
// their batches.
func drawRuns(t *rapid.T, f *fact, limit Offset) {
	drawBreak := func(from int) segment.Break {
		return segment.Break(rapid.IntRange(from, 2).Draw(t, "break"))
	}
	o := f.entry.Base
	if rapid.IntRange(0, 5).Draw(t, "head") == 0 {
		f.info.Head = drawBreak(0)
		if f.info.Head != segment.BreakNone {
			o += number(t, 1, 3, "head gone")
		} else {
			return
		}
	}
	for n := rapid.IntRange(0, 3).Draw(t, "runs"); n > 0 && o < limit; n-- {
		r := segment.Run{First: o, End: number(t, o+1, limit, "end"), Break: drawBreak(0)}
		r.End = min(r.End, limit)
		f.info.Evidence = max(f.info.Evidence, number(t, 0, r.End-1, "evidence"))
		f.info.Runs = append(f.info.Runs, r)
		o = r.End + number(t, 0, 2, "gap")
	}
	for i := range f.info.Runs {
		if r := &f.info.Runs[i]; i < len(f.info.Runs)-1 && r.Break == segment.BreakNone {
			r.Break = segment.BreakTorn
		}
	}
	f.info.Tail = f.info.Head != segment.BreakNone
	if n := len(f.info.Runs); n > 0 {
		f.info.Tail = f.info.Runs[n-1].Break != segment.BreakNone
	}
}

// plan lets reconcile plan, and scans the files that it asks for.
func (w *facts) plan(t *rapid.T) (*Plan, []fact) {
	p := &Plan{}
	var entries []FileEntry
	for i := range w.files {
		entries = append(entries, w.files[i].entry)
	}
	p.addFiles(entries)
	known := slices.Clone(w.files)
	for i := range known {
		f := w.of(p, &known[i])
		f.Info = known[i].info
		if known[i].quick {
			r := &known[i].info.Runs[0]
			f.Info = segment.FileInfo{Header: f.Info.Header, Sealed: true, Epoch: f.Info.Epoch}
			f.Info.Footer = segment.Footer{ID: f.Entry.ID, Base: r.First, End: r.End, Epoch: f.Info.Epoch}
		}
	}
	for range len(known) + 1 {
		var marks MarkSet
		p.reconcile(&w.super, &w.cfg, &marks)
		at := p.nextRescan(0)
		if at == len(p.Files) {
			return p, known
		}
		for ; at < len(p.Files); at = p.nextRescan(at + 1) {
			i := slices.IndexFunc(known, func(f fact) bool { return f.entry.ID == p.Files[at].Entry.ID })
			if !known[i].quick {
				t.Fatalf("file %x, scanned whole, is to be scanned again", uint64(known[i].entry.ID))
			}
			known[i].quick = false
			p.Files[at].Info = known[i].info
		}
	}
	t.Fatal("the plan asks for files without end")
	return nil, nil
}

func (w *facts) of(p *Plan, f *fact) *PlanFile {
	return &p.Files[slices.IndexFunc(p.Files, func(x PlanFile) bool { return x.Entry.ID == f.entry.ID })]
}

// reference is what has to come out, offset by offset.
type reference struct {
	w        *facts
	files    []fact
	evidence Offset
	hotStart Offset
	end      Offset
	refused  error           // nil, or a *CorruptError or *LostSuffixError with only its offset
	damaged  map[Offset]bool // below end: not served
}

type service uint8

const (
	nobody service = iota
	served
	declaredLost
)

func (r *reference) owner(o Offset) (e Epoch) {
	for _, l := range r.w.super.Lineage {
		if l.First <= o {
			e = l.Epoch
		}
	}
	return e
}

func holds(f *fact, o Offset) bool {
	return slices.ContainsFunc(f.info.Runs, func(x segment.Run) bool { return x.First <= o && o < x.End })
}

func epochOf(f *fact) Epoch {
	if f.info.Epoch == 0 && f.info.Verdict == segment.HeaderGood {
		return f.info.Header.Epoch
	}
	return f.info.Epoch
}

// at says who serves one offset: within its span the newest replacement alone, else any file.
func (r *reference) at(o Offset) service {
	e := r.owner(o)
	var claim *fact
	for i := range r.files {
		f := &r.files[i]
		h := &f.info.Header
		if h.Kind != segment.Created && epochOf(f) == e && h.Base <= o && o < h.End && (claim == nil || h.ID > claim.entry.ID) {
			claim = f
		}
	}
	if claim != nil {
		switch {
		case claim.info.Header.Kind == segment.Lost:
			return declaredLost
		case holds(claim, o):
			return served
		}
		return nobody
	}
	for i := range r.files {
		if f := &r.files[i]; f.info.Header.Kind == segment.Created && epochOf(f) == e && holds(f, o) {
			return served
		}
	}
	return nobody
}

// breakAt says why nothing more was found where offset o should be: of the file that should hold it.
func (r *reference) breakAt(o Offset) (segment.Break, segment.SyncMode) {
	var best *fact
	claims := func(f *fact) bool { return f.info.Header.Kind != segment.Created }
	for i := range r.files {
		f := &r.files[i]
		e := epochOf(f)
		if e != 0 && e != r.owner(o) || f.entry.Base > o || claims(f) && o >= f.info.Header.End {
			continue
		}
		if best == nil || claims(f) && !claims(best) || claims(f) == claims(best) && before(&best.entry, &f.entry) {
			best = f
		}
	}
	if best == nil {
		return segment.BreakNone, 0
	}
	mode := best.info.Header.Sync
	if best.info.Verdict == segment.HeaderDamaged {
		mode = r.w.super.Sync
	}
	if o == best.entry.Base && (len(best.info.Runs) == 0 || best.info.Runs[0].First > o) {
		return best.info.Head, mode
	}
	for i := range best.info.Runs {
		if x := &best.info.Runs[i]; x.End == o {
			return x.Break, mode
		}
	}
	return segment.BreakNone, mode
}

func (w *facts) expect(files []fact) *reference {
	s := &w.super
	r := &reference{w: w, files: files, evidence: max(s.Frontier, s.Start), hotStart: s.HotStart, damaged: map[Offset]bool{}}
	for i := range files {
		f := &files[i]
		if f.info.Epoch == 0 || f.quick {
			continue
		}
		proven := f.info.Evidence
		for _, l := range s.Lineage {
			if l.Epoch > f.info.Epoch {
				proven = min(proven, l.First)
			}
		}
		r.evidence = max(r.evidence, proven)
	}
	const farthest = 40
	more := func(o Offset) Offset { // the next offset that is not simply gone
		for o++; o < farthest; o++ {
			if r.at(o) != nobody {
				return o
			}
		}
		return EndNone
	}
	for o := r.hotStart; ; o++ {
		r.end = o
		switch {
		case r.at(o) == declaredLost:
			r.damaged[o] = true
		case r.at(o) == served:
		case o < s.Start: // given up by whoever trimmed
			r.hotStart = min(more(o), s.Start)
			o = r.hotStart - 1
		case o < r.evidence && w.cfg.AllowDamaged:
			r.damaged[o] = true
		case o < r.evidence:
			why, _ := r.breakAt(o)
			if r.refused = error(&CorruptError{Offset: o}); why == segment.BreakNone && more(o) == EndNone {
				r.refused = &LostSuffixError{End: o}
			}
			return r
		default:
			why, mode := r.breakAt(o)
			if why == segment.BreakPayload && mode == segment.OnCommit && !w.cfg.RepairChecksumTail {
				r.refused = &CorruptError{Offset: o}
			}
			return r
		}
	}
}

func refusal(err error) string {
	var corrupt *CorruptError
	var lost *LostSuffixError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &corrupt):
		return fmt.Sprint("damage at ", corrupt.Offset)
	case errors.As(err, &lost):
		return fmt.Sprint("lost from ", lost.End)
	}
	return err.Error()
}

// TestReconcileAgainstOffsets: the plan agrees with the reference about the evidence, about where the log
// begins and ends, and at each offset about whether it is served; what is above evidence is rescued;
// a footer alone vouches for nothing above it; and no file is removed that holds what is missing.
func TestReconcileAgainstOffsets(t *testing.T) {
	kinds := map[string]int{}
	check := func(t *rapid.T) {
		w := drawFacts(t)
		p, known := w.plan(t)
		want := w.expect(known)
		where := func() string {
			var b strings.Builder
			fmt.Fprintf(&b, "superblock start %d hot start %d frontier %d epoch %d lineage %v, %+v\n", w.super.Start, w.super.HotStart,
				w.super.Frontier, w.super.Epoch, w.super.Lineage, w.cfg.AllowDamaged)
			for i := range known {
				fmt.Fprintln(&b, &known[i])
			}
			return b.String()
		}
		if p.Evidence != want.evidence {
			t.Fatalf("evidence %d, want %d\n%s", p.Evidence, want.evidence, where())
		}
		got := refusal(p.Refused)
		kinds[strings.TrimRight(got, "0123456789 ")]++
		if got != refusal(want.refused) {
			t.Fatalf("refused: %s, want %s\n%s", got, refusal(want.refused), where())
		}
		if p.Refused != nil {
			return
		}
		if p.HotStart != want.hotStart || p.End != want.end || p.Epoch != w.super.Epoch+1 {
			t.Fatalf("[%d, %d) of epoch %d, want [%d, %d)\n%s", p.HotStart, p.End, p.Epoch, want.hotStart, want.end, where())
		}
		checkExtents(t, p, want, where)
	}
	for range 30 { // a rapid check is 100 draws
		rapid.Check(t, check)
	}
	t.Log(kinds)
}

func checkExtents(t *rapid.T, p *Plan, want *reference, where func() string) {
	o := p.HotStart
	for i := range p.Extents {
		x := &p.Extents[i]
		if x.First != o || x.End <= x.First || x.End > p.End {
			t.Fatalf("extents %+v do not follow each other\n%s", p.Extents, where())
		}
		at := slices.IndexFunc(want.files, func(f fact) bool { return f.entry.ID == x.Segment })
		for ; o < x.End; o++ {
			damaged := x.Damage != segment.BreakNone
			switch {
			case damaged != want.damaged[o]:
				t.Fatalf("offset %d: damaged %v, want %v\n%s", o, damaged, want.damaged[o], where())
			case !damaged && (!holds(&want.files[at], o) || epochOf(&want.files[at]) != want.owner(o)):
				t.Fatalf("offset %d is served from %v\n%s", o, &want.files[at], where())
			case !damaged && o >= p.Evidence && want.files[at].quick:
				t.Fatalf("offset %d, above evidence, is believed because of a footer\n%s", o, where())
			}
			if rescued := slices.ContainsFunc(p.Rescues, func(r Rescue) bool { return r.First <= o && o < r.End }); rescued != (o >= p.Evidence && !damaged) {
				t.Fatalf("offset %d: rescued %v\n%s", o, rescued, where())
			}
		}
	}
	if o != p.End {
		t.Fatalf("extents end at %d, the log at %d\n%s", o, p.End, where())
	}
	for i := range want.files {
		f := &want.files[i]
		fate := p.Files[slices.IndexFunc(p.Files, func(x PlanFile) bool { return x.Entry.ID == f.entry.ID })].Fate
		if fate != FateSuperseded && fate != FateLeftover && fate != FateUnfinished {
			continue
		}
		for o := p.HotStart; o < p.End; o++ {
			if want.damaged[o] && holds(f, o) && epochOf(f) == want.owner(o) {
				t.Fatalf("%s: the %v file %v holds offset %d, which nothing serves", where(), fate, f, o)
			}
		}
	}
}
