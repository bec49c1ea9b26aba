package core

import (
	"cmp"
	"slices"

	"varve/core/manifest"
	"varve/core/segment"
)

// Plan is what recovery found and decided. It is a pure function of the superblock, the files and
// the configuration; `varve log check` prints it and changes nothing.
type Plan struct {
	New     bool // the directory becomes a new log
	Files   []PlanFile
	Unknown []string // names that are not ours; never touched

	Epoch    Epoch    // that this open claims
	Start    Offset   // first readable offset
	HotStart Offset   // first offset on disk
	Evidence Offset   // proven durable
	End      Offset   // the recovered end
	Extents  []Extent // on disk; what the cold tier serves lies before and between them
	Rescues  []Rescue // content above evidence, copied before it is served
	Declared []Span   // damaged or missing spans that a repair declares lost
	Rebuilt  bool     // a repair derived the superblock from the segments

	Torn      bool // the log ends before a torn batch
	TornFile  int  // in Files
	TornPos   int64
	TornBytes int64

	Damage  []CorruptError // damage met; the log opens in spite of it only with allow_damaged
	Lost    LostSuffixError
	Refused error // why the log cannot be opened

	cold        *manifest.Manifest // nil: there is no cold tier, or it does not answer
	warm        *warmState         // the same of the warm tier
	floor       Epoch              // least epoch to claim
	absent      bool               // there was no directory
	hole        bool               // refused for records that no tier has
	refusal     RefusedError
	twins       bool // two files have one segment id
	quarantines []FileEntry
}

// PlanFile is one segment file and what becomes of it.
type PlanFile struct {
	Entry FileEntry
	Info  segment.FileInfo
	Fate  Fate
	Why   string

	end        Offset // after its last record
	reach      Offset // greatest end or claim of this file and those before it
	serving    bool   // an extent names it
	appendTime Time   // of its newest batch
	rescan     bool   // verify batch by batch before the plan can be made
	replaced   bool   // written by this open: complete, with a footer
}

// Span is the offsets [First, End) of one epoch.
type Span struct {
	Epoch      Epoch
	First, End Offset
}

// Rescue copies [First, End) of a file into a new one.
type Rescue struct {
	File       int    // in Plan.Files; -1: from the warm tier
	Generation uint64 // there
	Epoch      Epoch
	First, End Offset
}

// Fate is what becomes of a file.
type Fate uint8

// Fates.
const (
	FateServe      Fate = iota // serves at least one offset
	FateVoid                   // its epoch does not own its offsets: kept until retention
	FateSuperseded             // replaced over its whole span: removed once the recovery is recorded
	FateLeftover               // wholly below HotStart: removed
	FateUnfinished             // no batch in it verifies, nothing is missing: removed
	FateQuarantine             // moved to quarantine/
	FateDamaged                // holds what is missing, but it does not verify: kept
)

// String returns the fate as a person reads it.
func (f Fate) String() string {
	return [...]string{"serve", "void", "superseded", "leftover", "unfinished", "quarantine", "damaged"}[f]
}

// Empty reports whether recovery has nothing to do but claim an epoch.
func (p *Plan) Empty() bool {
	if len(p.Rescues)+len(p.Declared) > 0 || len(p.quarantines) > 0 || p.Refused != nil {
		return false
	}
	for i := range p.Files {
		switch p.Files[i].Fate {
		case FateSuperseded, FateLeftover, FateUnfinished:
			return false
		}
	}
	return true
}

func (p *Plan) reset() {
	files, damage := p.Files[:0], p.Damage[:0]
	*p = Plan{
		Files: files, Damage: damage, Unknown: p.Unknown[:0], Extents: p.Extents[:0],
		Rescues: p.Rescues[:0], quarantines: p.quarantines[:0], Declared: p.Declared[:0],
	}
}

// addFile appends a file, keeping the memory of an old one in its slot.
func (p *Plan) addFile(e FileEntry) *PlanFile {
	n := len(p.Files)
	if n < cap(p.Files) {
		p.Files = p.Files[:n+1]
	} else {
		p.Files = append(p.Files, PlanFile{})
	}
	f := &p.Files[n]
	info := segment.FileInfo{Runs: f.Info.Runs[:0], Producers: f.Info.Producers[:0]}
	*f = PlanFile{Entry: e, Info: info}
	return f
}

// addFiles takes over the files of a directory, by base offset, then id.
func (p *Plan) addFiles(files []FileEntry) {
	slices.SortFunc(files, func(a, b FileEntry) int { return cmp.Compare(a.ID, b.ID) })
	for i := 1; i < len(files); i++ {
		p.twins = p.twins || files[i-1].ID == files[i].ID
	}
	slices.SortFunc(files, func(a, b FileEntry) int {
		return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(a.ID, b.ID))
	})
	for i := range files {
		p.addFile(files[i])
	}
}

func before(a, b *FileEntry) bool {
	if a.Base != b.Base {
		return a.Base < b.Base
	}
	return a.ID < b.ID
}

func (p *Plan) nextRescan(at int) int {
	for at < len(p.Files) && !p.Files[at].rescan {
		at++
	}
	return at
}

// epoch is the epoch of a file's batches, 0 if nothing verified says.
func (f *PlanFile) epoch() Epoch {
	if f.Info.Epoch != 0 {
		return f.Info.Epoch
	}
	if f.Info.Verdict == segment.HeaderGood {
		return f.Info.Header.Epoch
	}
	return 0
}

func (f *PlanFile) usable() bool {
	return f.Info.Verdict == segment.HeaderGood || f.Info.Verdict == segment.HeaderDamaged
}

// replacement reports whether the file's header claims a span.
func (f *PlanFile) replacement() bool { return f.Info.Header.Kind != segment.Created }

func (f *PlanFile) lost() bool { return f.Info.Header.Kind == segment.Lost }

// quick reports whether a footer or a sidecar vouches for the file instead of its batches.
func (f *PlanFile) quick() bool { return !f.Info.Scanned && (f.Info.Sealed || f.Info.Sidecar) }

// run returns the span of verified batches that holds an offset.
func (f *PlanFile) run(o Offset) (end Offset, ok bool) {
	if f.quick() {
		return f.Info.Footer.End, f.Info.Footer.Base <= o && o < f.Info.Footer.End
	}
	for i := range f.Info.Runs {
		if r := &f.Info.Runs[i]; r.First <= o && o < r.End {
			return r.End, true
		}
	}
	return 0, false
}

// runBegins reports whether the first batch of a run has this offset.
func (f *PlanFile) runBegins(o Offset) bool {
	for i := range f.Info.Runs {
		if f.Info.Runs[i].First == o {
			return true
		}
	}
	return false
}

// batches reports whether any batch of the file verifies.
func (f *PlanFile) batches() bool {
	return len(f.Info.Runs) > 0 || f.quick() && f.Info.Footer.End > f.Info.Footer.Base
}

// breakAt returns why the file's batches end at an offset, and where.
func (f *PlanFile) breakAt(o Offset) (segment.Break, int64) {
	if o == f.Entry.Base && (len(f.Info.Runs) == 0 || f.Info.Runs[0].First > o) {
		return f.Info.Head, f.Info.HeadPos
	}
	for i := range f.Info.Runs {
		if r := &f.Info.Runs[i]; r.End == o {
			return r.Break, r.BreakPos
		}
	}
	return segment.BreakNone, -1
}

// runFirst returns where the batches begin that lead to an offset without a break. The offset lies in
// one of the file's runs: what reaches above evidence was scanned.
func (f *PlanFile) runFirst(o Offset) Offset {
	for i := range f.Info.Runs {
		if r := &f.Info.Runs[i]; r.First <= o && o < r.End {
			return r.First
		}
	}
	check(false, "an extent above evidence lies in a run")
	return f.Entry.Base
}

// ownerOf returns the epoch that owns an offset and where its span ends. Epochs of a lineage rise and
// their offsets do not fall.
func ownerOf(lineage []segment.Lineage, o Offset) (Epoch, Offset) {
	at, end := 0, len(lineage)
	for at < end {
		if mid := (at + end) / 2; lineage[mid].First > o {
			end = mid
		} else {
			at = mid + 1
		}
	}
	var e Epoch
	if at > 0 {
		e = lineage[at-1].Epoch
	}
	return e, firstOf(lineage, at)
}

// laterFirst returns the first offset of any epoch later than e: evidence of e ends there.
func laterFirst(lineage []segment.Lineage, e Epoch) Offset {
	at, end := 0, len(lineage)
	for at < end {
		if mid := (at + end) / 2; lineage[mid].Epoch > e {
			end = mid
		} else {
			at = mid + 1
		}
	}
	return firstOf(lineage, at)
}

// firstOf returns where the epoch at a place of a lineage begins.
func firstOf(lineage []segment.Lineage, at int) Offset {
	if at == len(lineage) {
		return EndNone
	}
	return lineage[at].First
}
