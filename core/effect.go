package core

import "varve/core/segment"

// Lane groups effects that run in order. Effects of different lanes run in any order and may
// overlap; at most one effect of a lane is in flight.
type Lane uint8

// Lanes.
const (
	Tail      Lane = iota // everything that appends: Create, Commit, Rollback, Seal
	Syncs                 // Sync: the timer's sync, beside a Commit
	Hot                   // discovery, superblock, and all other work on files
	Uploads               // Upload: a sealed segment becomes an object
	Catalogue             // the manifest of the cold tier, and deletions there
	Warm                  // the stream of the warm tier
	LaneCount
)

// Effect is a request with room for its answer. The core owns it; it is valid from Next until
// Complete, and the executor fills in its result fields in between.
type Effect interface {
	// Lane is the lane that the effect belongs to.
	Lane() Lane
	// Result is the part of the answer that all effects share.
	Result() *Result
}

// Step names the part of an effect that failed, because a failed sync means something else than a
// failed write: after a failed sync nobody knows what the device holds, and asking again lies.
type Step uint8

// Steps.
const (
	StepNone  Step = iota
	StepOpen       // open, create
	StepRead       // read, list, stat
	StepWrite      // write, truncate, rename, unlink, mkdir
	StepSync       // sync of a file or of a directory: poisons the log
	StepCheck      // content did not verify (Replace: the source changed; plan anew)
)

// Result is what every effect answers besides its own fields.
type Result struct {
	Stage     int   // executor's progress through an effect of several steps; 0 when issued
	Failed    Step  // where it failed; StepNone with a nil error
	NoSpace   bool  // the failure was ENOSPC or EDQUOT
	FreeBytes int64 // free space seen, -1 if the effect did not look
}

// answer is Result under a name that, embedded, leaves the method Result free.
type answer = Result

// Result implements Effect.
func (r *Result) Result() *Result { return r }

// Create makes a segment file: open exclusively, write the header sector, sync the file, sync the
// directory. Success promises file and directory entry durable.
type Create struct {
	answer
	Header segment.Header
	Bytes  []byte // encoded header, one sector
}

// Commit appends one cohort's batches with one gathered write and, when Sync is set, one sync.
// Success promises all bytes written and, with Sync, durable.
type Commit struct {
	answer
	Segment    segment.ID
	Base       Offset // base offset of the segment, for its name
	Pos        int64  // where the write starts
	Bufs       [][]byte
	Bytes      int64 // sum of the lengths of Bufs
	Sync       bool
	First, End Offset // records written
}

// Rollback cuts a segment back after a failed write and makes the cut durable: truncate, sync.
type Rollback struct {
	answer
	Segment segment.ID
	Base    Offset
	Bytes   int64 // new size
}

// Seal ends a segment: write the footer, cut the file to its exact size, sync. Success promises
// every batch and the footer durable.
type Seal struct {
	answer
	Segment segment.ID
	Base    Offset
	Pos     int64  // where the footer starts
	Footer  []byte // encoded footer
	Bytes   int64  // exact size of the file afterwards
}

// Sync makes durable what was written to a segment before it was issued.
type Sync struct {
	answer
	Segment segment.ID
	Base    Offset
	End     Offset // batches that end at or before it are claimed
}

// FileEntry is a segment file found in the directory.
type FileEntry struct {
	ID    segment.ID
	Base  Offset
	Bytes int64
	Index bool // a sidecar index lies beside it
}

// List reads the directory. Discovery, part 1.
type List struct {
	answer
	Missing bool        // the directory does not exist
	Super   [2]bool     // super.0, super.1
	Files   []FileEntry // in any order
	Tmp     []string    // unfinished *.tmp, ours to remove
	Orphans []string    // sidecar indexes without their segment, ours to remove
	Unknown []string    // names that are not ours: warned about, never touched
	Spare   int64       // bytes of the spare that SaveSuper keeps; -1: there is none
}

// LoadSuper reads both superblock slots. Discovery, part 2.
type LoadSuper struct {
	answer
	Slots [2][]byte // file contents (at most segment.SuperBytesMax+1), empty if there is no file
}

// SaveSuper writes one superblock slot. Fresh goes through tmp, sync, rename, directory sync, and keeps
// a spare file whose blocks the tmp file takes where there is no other space;
// otherwise in place: write, sync. NewLog first makes the directory and syncs its parent.
type SaveSuper struct {
	answer
	Slot   int
	Fresh  bool
	NewLog bool
	Bytes  []byte
	Spare  bool // of a fresh one: there is a spare as long as the slot
}

// Scan verifies one segment file. Discovery, part 3.
type Scan struct {
	answer
	File        FileEntry
	LogID       segment.LogID
	SectorBytes int     // used where the file's own header does not verify
	Whole       bool    // verify every batch, even where a footer vouches for the file
	Lineage     Lineage // batches that it voids do not count for producers
	Info        segment.FileInfo
}

// Prepare writes zeros ahead of the tail, so that commits write into written blocks.
type Prepare struct {
	answer
	Segment segment.ID
	Base    Offset
	Pos     int64
	Bytes   int64
}

// Replace copies the span [Header.Base, Header.End) of a source file into a complete new file,
// verifying each batch, and puts it in place: tmp, footer, sync, rename, directory sync.
type Replace struct {
	answer
	Header            segment.Header // kind Replacement; its ID names the new file
	Source            FileEntry
	Object            Extent // of the cold or the warm tier, where that is the source: Tier says so
	SourceEpoch       Epoch  // epoch that the batches must have
	Frontier          Offset // evidence written into the new placement headers
	IndexSpacingBytes int64
	Bytes             int64                   // result: size of the new file
	AppendTime        Time                    // result: of its newest batch
	Producers         []segment.ProducerState // result: of its batches; the memory is reused
}

// SaveIndex derives the sidecar index of a file that has no footer: scan, tmp, sync, rename. Only
// [Base of the file, End) is indexed.
type SaveIndex struct {
	answer
	File              FileEntry
	LogID             segment.LogID
	End               Offset
	IndexSpacingBytes int64
}

// Remove unlinks files and syncs the directory once.
type Remove struct {
	answer
	Files []FileEntry // segments, their sidecars with them
	Names []string    // other names: *.tmp, orphaned sidecars
}

// Quarantine moves files into quarantine/ and syncs both directories. Nothing is destroyed: a name
// taken there gets a numbered suffix.
type Quarantine struct {
	answer
	Files []FileEntry
	Names []string // other names: superblock slots that a repair replaces
}

// Upload copies the span [Header.Base, Header.End) of a segment file into an object under a key that
// was never used before, verifying each batch. Success promises that the object is durable and that
// the store's checksum of it is the one computed here.
type Upload struct {
	answer
	Header            segment.Header // kind Replacement, ID and epoch those of the source
	Attempt           uint64
	Source            FileEntry
	SourceEpoch       Epoch
	SourceSectorBytes uint32
	IndexSpacingBytes int64

	Bytes            int64 // result: size of the object
	FooterBytes      int64 // of its footer, at its end
	CRC              uint32
	MinTime, MaxTime Time
	AppendTime       Time // of its newest batch
}

// Object returns the object that the effect writes.
func (e *Upload) Object() Object {
	return Object{Base: e.Header.Base, End: e.Header.End, Epoch: e.Header.Epoch, Attempt: e.Attempt}
}

// Object names an object of the cold tier.
type Object struct {
	Base, End Offset
	Epoch     Epoch
	Attempt   uint64
}

// LoadManifest reads the manifest of the cold tier.
type LoadManifest struct {
	answer
	Look    bool   // where there is none, look for objects of segments
	Missing bool   // there is none
	Objects bool   // and such are there
	Tag     string // the bucket's version of it, for SwapManifest
	Bytes   []byte
}

// SwapManifest replaces the manifest if it is still the version that Tag names; without a Tag, if
// there is none. After any error nobody knows whether it happened, or will happen yet.
type SwapManifest struct {
	answer
	Bytes  []byte
	Tag    string
	NewTag string // result
	Lost   bool   // result: the error says that it is another version now
}

// ScanObject reads the footer of an object, for the producers that it names.
type ScanObject struct {
	answer
	Extent  Extent
	LogID   segment.LogID
	Lineage Lineage
	Info    segment.FileInfo
}

// LoadPage reads a page of the manifest.
type LoadPage struct {
	answer
	Base    Offset
	Number  uint64
	Size    int64 // of its text, as the manifest says
	Missing bool
	Bytes   []byte
}

// SavePage writes a page of the manifest, under a key that was never used before. After an error
// nobody knows whether it is there.
type SavePage struct {
	answer
	Base   Offset
	Number uint64
	Bytes  []byte
}

// Delete deletes objects, and pages of the manifest. One that is not there is deleted.
type Delete struct {
	answer
	Objects []Object
	Pages   []PageName
}

// PageName names a page of the manifest.
type PageName struct {
	Base   Offset
	Number uint64
}

// Space looks at the free space; only used while there is too little.
type Space struct{ answer }

// Lane implements Effect.
func (*Create) Lane() Lane { return Tail }

// Lane implements Effect.
func (*Commit) Lane() Lane { return Tail }

// Lane implements Effect.
func (*Rollback) Lane() Lane { return Tail }

// Lane implements Effect.
func (*Seal) Lane() Lane { return Tail }

// Lane implements Effect.
func (*Sync) Lane() Lane { return Syncs }

// Lane implements Effect.
func (*List) Lane() Lane { return Hot }

// Lane implements Effect.
func (*LoadSuper) Lane() Lane { return Hot }

// Lane implements Effect.
func (*SaveSuper) Lane() Lane { return Hot }

// Lane implements Effect.
func (*Scan) Lane() Lane { return Hot }

// Lane implements Effect.
func (*Prepare) Lane() Lane { return Hot }

// Lane implements Effect.
func (*Replace) Lane() Lane { return Hot }

// Lane implements Effect.
func (*SaveIndex) Lane() Lane { return Hot }

// Lane implements Effect.
func (*Remove) Lane() Lane { return Hot }

// Lane implements Effect.
func (*Quarantine) Lane() Lane { return Hot }

// Lane implements Effect.
func (*Space) Lane() Lane { return Hot }

// Lane implements Effect.
func (*Upload) Lane() Lane { return Uploads }

// Lane implements Effect.
func (*LoadManifest) Lane() Lane { return Catalogue }

// Lane implements Effect.
func (*SwapManifest) Lane() Lane { return Catalogue }

// Lane implements Effect.
func (*Delete) Lane() Lane { return Catalogue }

// Lane implements Effect.
func (*ScanObject) Lane() Lane { return Catalogue }

// Lane implements Effect.
func (*LoadPage) Lane() Lane { return Catalogue }

// Lane implements Effect.
func (*SavePage) Lane() Lane { return Catalogue }

// Fetch is one read of a Cursor: bytes of one extent, from a batch boundary on. It belongs to no
// lane; any number may be in flight, one a cursor.
type Fetch struct {
	Extent  Extent
	From    Offset // the first offset wanted
	Pos     int64  // position of the batch that holds From; 0: look it up
	NoIndex bool   // the index misled us: start at the first batch
	Again   bool   // what was read did not verify: nothing that is kept of it counts
	Bytes   int    // how much to read; a batch longer than that is asked for again
	LogID   segment.LogID

	Buf []byte // result: what was read, from a batch boundary at At on; memory is reused
	At  int64  // result: position of Buf[0]
	EOF bool   // result: the file ends with Buf

	Missing bool // result: the error is that the file is not there
}
