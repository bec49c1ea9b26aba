package core_test

import (
	"strings"
	"testing"

	"varve/core"
	"varve/core/segment"
)

// The tests of this file flip every single bit of every byte of each kind of file, one at a time,
// open the log on that image and read everything. Allowed is: all records; or a typed error that
// names the place; or, in the last commit above evidence, a log that ends before it. Nothing else,
// and no error at all for a flip in a superblock slot, an index, a footer, padding or a segment
// header. Each image is opened read-only first; then for real wherever the first open saw anything
// but a clean log of all records, and for a sixteenth of the rest.

func flipConfig() core.Config {
	cfg := smokeConfig()
	cfg.SegmentBytes, cfg.PendingBytes, cfg.PrepareBytes = 64<<10, 1<<20, 1024
	cfg.IndexSpacingBytes = 1
	return cfg
}

// numbered makes a batch whose records are first, first+1 and so on, padded to a size.
func numbered(first, records, bytes int) core.Batch {
	b := batchOf(first)
	for len(b.Payload) < bytes {
		b.Payload = append(b.Payload, byte(len(b.Payload)*7+first))
	}
	b.Records, b.PayloadCRC = uint32(records), segment.PayloadCRC(b.Payload)
	b.MaxTime = timeOf(core.Offset(first + records))
	return b
}

// fill appends batches of different shapes until the segments have grown by about size bytes, and
// returns the number of records so far.
func (r *rig) fill(n int, size int64) int {
	r.t.Helper()
	before := r.log.Stats().SegmentBytes
	for i := 0; r.log.Stats().SegmentBytes < before+size; i++ {
		b := numbered(n, 1+i%3, 8+i*37%300)
		if i%3 == 0 {
			b.Producer = core.Producer{ID: int64(n), Epoch: 1}
		}
		if _, err := r.log.Append(r.now, &b); err != nil {
			r.t.Fatal(err)
		}
		n += int(b.Records)
		r.now.Mono += 1 << 30 // a slow writer: little is written ahead
		if i%4 != 1 {
			r.pump()
		}
	}
	r.pump()
	return n
}

// segments returns the names of the segment files.
func segments(files []savedFile) (names []string) {
	for _, f := range files {
		if _, _, kind, ok := segment.ParseName(f.name); ok && kind == segment.NameSegment {
			names = append(names, f.name)
		}
	}
	return names
}

func TestFlipsOfASealedLog(t *testing.T) {
	r := newRig(t)
	cfg := flipConfig()
	r.open(cfg)
	n := r.fill(0, 4000)
	r.close()
	w := newFlipWorld(t, cfg, r.files(), n, core.Offset(n))
	w.seek = []core.Offset{core.Offset(n) / 2, core.Offset(n) - 1}
	t.Run("superblocks", func(t *testing.T) {
		for _, name := range []string{"super.0", "super.1"} {
			c := w.all(t, name)
			if c[verdictReader]+c[verdictRefused]+c[verdictEnds] > 0 {
				t.Error("a flip in one slot costs something")
			}
			if c[verdictAround] == 0 {
				t.Error("no flip made a slot invalid: this test sees nothing")
			}
		}
	})
	name := segments(w.files)[0]
	t.Run("segment", func(t *testing.T) {
		if c := w.all(t, name); c[verdictReader] == 0 || c[verdictRefused]+c[verdictEnds] > 0 {
			t.Error("a sealed segment is opened by its footer; its reader finds the damage")
		}
	})
	t.Run("segment, verify_all_on_open", func(t *testing.T) {
		w.cfg.VerifyAllOnOpen = true
		if c := w.all(t, name); c[verdictRefused] == 0 || c[verdictReader]+c[verdictEnds] > 0 {
			t.Error("an open that verifies everything finds all damage")
		}
	})
}

// TestFlipsOfActiveSegments: two lives that died; the segment of each, what was rescued, and the
// sidecar of the first.
func TestFlipsOfActiveSegments(t *testing.T) {
	r := newRig(t)
	cfg := flipConfig()
	cfg.Preallocate = false
	r.open(cfg)
	n := r.fill(0, 3<<10)
	r.power()
	cfg.Preallocate = true
	r.open(cfg)
	r.wantMarks(core.MarkRescue, core.MarkSidecarSaved)
	n = r.fill(n, 15<<10)
	proven := r.log.Committed()
	for range 3 { // the last commit, which nothing proves
		b := numbered(n, 2, 100)
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
		n += 2
	}
	r.pump()
	r.kill() // zeros written ahead stay
	files := r.files()
	w := newFlipWorld(t, cfg, files, n, proven)
	w.seek = []core.Offset{2, 5, core.Offset(n) / 2}
	ends, torn := 0, 0
	for i := range files {
		c := w.all(t, files[i].name)
		ends += c[verdictEnds]
		torn += c[verdictTorn]
	}
	if last := files[len(files)-1]; len(segments(files)) != 3 || len(last.data) < 16<<10 {
		t.Errorf("the world is not what was meant: %v, %s of %d bytes", segments(files), last.name, len(last.data))
	}
	if ends == 0 || torn == 0 {
		t.Error("no flip ended the log: the last commit is not above evidence; or none hit the zeros behind it")
	}
	t.Logf("ends before the last commit, as the design allows: %d", ends)
}

// TestFlipsOfALargeIndex: the sidecar of a segment that a crash left, of four index blocks.
func TestFlipsOfALargeIndex(t *testing.T) {
	r := newRig(t)
	cfg := flipConfig()
	cfg.SegmentBytes, cfg.Preallocate = 1<<20, false
	r.open(cfg)
	n := 0
	for ; n < 520; n++ {
		b := numbered(n, 1, 8)
		if n == 0 {
			b.Producer = core.Producer{ID: 0, Epoch: 1}
		}
		if _, err := r.log.Append(r.now, &b); err != nil {
			t.Fatal(err)
		}
		if n%8 == 7 {
			r.pump()
		}
	}
	r.power()
	r.open(cfg)
	r.close()
	w := newFlipWorld(t, cfg, r.files(), n, core.Offset(n))
	w.seek, w.skim = []core.Offset{100, 200, 400, 515}, true // one in each block
	for _, f := range w.files {
		if strings.HasSuffix(f.name, ".idx") {
			if c := w.all(t, f.name); c[verdictAll] == 0 || len(f.data) < 3*segment.IndexBlockBytes {
				t.Errorf("an index of %d bytes", len(f.data))
			}
			return
		}
	}
	t.Fatal("there is no sidecar index")
}
