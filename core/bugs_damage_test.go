package core_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

// TestMC1FlippedBits: every bit of every byte of a sealed segment between two others, and of the
// active one below what is proven. A read gives the exact records or names file, position and
// offset; the records of the same file behind the damage, and those of the other files, stay
// readable. (TestFlipsOfASealedLog and its neighbours do the same to every kind of file.)
func TestMC1FlippedBits(t *testing.T) {
	cfg := flipConfig()
	cfg.SegmentBytes, cfg.Preallocate = 2048, false
	r := newRig(t)
	r.open(cfg)
	n := r.fill(0, 5<<10)
	r.pass(cfg.IdleSave)
	r.kill() // the last segment is not sealed; a superblock proves all of it
	w := newFlipWorld(t, cfg, r.files(), n, core.Offset(n))
	names := segments(w.files)
	if len(names) < 3 {
		t.Fatalf("segments %v", names)
	}
	if c := w.all(t, names[1]); c[verdictReader] == 0 || c[verdictEnds]+c[verdictRefused] > 0 {
		t.Error("a flip in a sealed segment is the reader's to find, and of that segment alone")
	}
	if c := w.all(t, names[len(names)-1]); c[verdictRefused] == 0 || c[verdictEnds]+c[verdictReader] > 0 {
		t.Error("a flip in the proven records of the active segment is refused")
	}
}

// shortFS makes one read return half of what it was asked for, with or without an error.
type shortFS struct {
	disk.FS
	skip int
	err  error
	hit  bool
}

type shortFile struct {
	disk.File
	fs *shortFS
}

func (s *shortFS) Open(name string, mode disk.Mode) (disk.File, error) {
	f, err := s.FS.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return shortFile{f, s}, nil
}

func (f shortFile) ReadAt(p []byte, off int64) (int, error) {
	if f.fs.skip--; f.fs.skip != -1 {
		return f.File.ReadAt(p, off)
	}
	f.fs.hit = true
	n, err := f.File.ReadAt(p[:len(p)/2], off)
	if err == nil {
		err = f.fs.err
	}
	return n, err
}

// TestMC4ReadErrorsWhileOpening: each read of an open fails once, or returns less than it was asked
// for. That is no end and no damage: the open fails and leaves all files as they were (what is only
// derived may fail to be read: the open does without), and the next one has everything.
func TestMC4ReadErrorsWhileOpening(t *testing.T) {
	for name, img := range worldsToOpen(t) {
		t.Run("EIO, "+name, func(t *testing.T) {
			n := failEach(t, img, faultfs.OpRead, faultfs.D14ReadOnce, func(t *testing.T, r *rig) { r.wantNothingTaken(img) })
			if n < 3 {
				t.Errorf("%d reads", n)
			}
		})
		for _, err := range []error{nil, io.EOF, io.ErrUnexpectedEOF} {
			t.Run(fmt.Sprintf("short read, %v, %s", err, name), func(t *testing.T) {
				for skip := 0; ; skip++ {
					r := newRig(t)
					r.restore(img)
					short := &shortFS{FS: r.disk.FS(0), skip: skip, err: err}
					r.store.Reset(short)
					r.start(tableConfig())
					if !short.hit {
						return
					}
					r.store.Reset(r.disk.FS(0))
					r.wantNothingTaken(img)
				}
			})
		}
	}
}

// wantNothingTaken wants an open that met an I/O error to have failed with nothing changed, or to
// have done without; a retry has all records.
func (r *rig) wantNothingTaken(img image) {
	r.t.Helper()
	switch r.log.Phase() {
	case core.Ready:
		r.wantRecords(0, recordsToOpen)
	case core.Failed:
		var e *core.IOError
		if !errors.As(r.log.Err(), &e) {
			r.t.Errorf("error %v, want an I/O error", r.log.Err())
		}
		if writes(r.disk) == 0 {
			wantSame(r.t.(*testing.T), img, imageOf(r))
		}
		r.wantUnchanged(img, nil, nil)
	default:
		r.t.Errorf("phase %v", r.log.Phase())
	}
	r.again()
}

// TestMC6LengthFieldFlipped: single bits of the length field alone, of a record in a sealed segment
// of 1000. The error is at that record; every other one can be read, and allow_damaged serves it.
func TestMC6LengthFieldFlipped(t *testing.T) {
	const n = 1000
	cfg := tableConfig()
	cfg.SegmentBytes = 1 << 20
	r := newRig(t)
	r.open(cfg)
	r.put(0, n, 40)
	r.close()
	img := imageOf(r)
	name := segments(img)[0]
	list := img.batches(t, name)
	for _, k := range []int{0, 1, 500, n - 2, n - 1} {
		for bit := range 32 {
			if bit > 4 && bit < 28 && (bit+k)%5 > 0 {
				continue
			}
			length := list[k].pos + segment.PlacementBytes + int64(bit/8)
			r.restore(img)
			if !r.disk.RotAt(name, length, uint8(bit%8)) {
				t.Fatal("no such byte")
			}
			r.open(cfg)
			got, err := r.readUntil(0)
			var damage *core.CorruptError
			if len(got) != k || !errors.As(err, &damage) || damage.Offset != core.Offset(k) || damage.Name() != name {
				t.Fatalf("record %d, bit %d: %d records, %v", k, bit, len(got), err)
			}
			if k < n-1 {
				if got, err = r.readUntil(core.Offset(k) + 1); err != nil || len(got) != n-1-k || got[0] != uint64(k+1) {
					t.Fatalf("behind record %d, bit %d: %d records, %v", k, bit, len(got), err)
				}
			}
			if bit%8 != 3 {
				continue
			}
			r.kill()
			all := cfg
			all.VerifyAllOnOpen, all.AllowDamaged = true, true
			r.open(all)
			if got, err = r.readUntil(core.Offset(k) + 1); k < n-1 && (err != nil || len(got) != n-1-k) {
				t.Fatalf("allow_damaged, behind record %d, bit %d: %d records, %v", k, bit, len(got), err)
			}
			if _, err = r.readUntil(core.Offset(k)); !errors.As(err, &damage) || damage.Offset != core.Offset(k) {
				t.Fatalf("allow_damaged, record %d, bit %d: %v", k, bit, err)
			}
		}
	}
}

// derived returns the names of files that hold nothing but what can be derived.
func (m image) derived() (names []string) {
	for _, f := range m {
		if strings.HasSuffix(f.name, ".idx") {
			names = append(names, f.name)
		}
	}
	return names
}

// withSidecar is a log whose first segment has a sidecar and whose second has a footer: 2 x 40
// records, all proven, closed cleanly.
func withSidecar(t *testing.T, cfg core.Config) image {
	t.Helper()
	r := newRig(t)
	r.open(cfg)
	r.put(0, 40, 60)
	r.pass(cfg.IdleSave)
	r.kill()
	r.open(cfg)
	r.put(40, 80, 60)
	r.close()
	img := imageOf(r)
	if len(img.derived()) != 1 || len(segments(img)) != 2 {
		t.Fatalf("not the log that was meant: %v, %v", segments(img), img.derived())
	}
	return img
}

// TestIX1ZeroEntriesInTheIndex: entries of zeros, or of times that go back, at the end of a sidecar
// and of a footer. Retention by time deletes nothing: it decides by nothing that an index says.
func TestIX1ZeroEntriesInTheIndex(t *testing.T) {
	const hour = 3600 * 1_000_000_000
	cfg := tableConfig()
	cfg.RetentionAge = hour
	img := withSidecar(t, cfg)
	for n := 1; n <= 64; n *= 2 {
		for _, fill := range []byte{0, 0x80} { // zero; the least time there is
			entries := make([]byte, 24*n)
			for i := range entries {
				if i%8 == 7 {
					entries[i] = fill
				}
			}
			bad := img
			for _, name := range append(img.derived(), segments(img)...) {
				bad = bad.edited(name, func(b []byte) []byte { return append(b, entries...) })
			}
			r := newRig(t)
			r.now.Mono, r.now.Wall = r.now.Mono+1_000_000, r.now.Wall+1_000_000
			r.restore(bad)
			r.open(cfg)
			r.wantMarks(core.MarkFooterDerived, core.MarkSidecarSaved)
			for range 5 {
				r.pass(cfg.RetentionCheckInterval)
			}
			r.wantNoMarks(core.MarkRetentionAge, core.MarkCorrupt)
			r.wantRecords(0, 80)
			r.pass(2 * hour) // and by the true age it does its work
			r.wantMarks(core.MarkRetentionAge)
		}
	}
}

// TestIX2KillsLeaveNoWork: 100 lives end with kill -9. A missing index is no error, is derived from
// its segment once, and an open reads no more than the segment that was active. (TestKill does it
// to real processes.)
func TestIX2KillsLeaveNoWork(t *testing.T) {
	cfg := tableConfig()
	r := newRig(t)
	r.open(cfg)
	for life := range 100 {
		r.put(20*life, 20*life+20, 100)
		r.kill()
		r.disk.ResetCounts()
		r.recover(cfg)
		read := r.disk.Counts().ReadBytes
		// Headers and trailers of two small files a life, and twice the segment that was active: its
		// scan, and the copy of what nothing proves.
		if limit := uint64(life+1)*3*4096 + 2*20*1024 + 3*8192; read > limit {
			t.Fatalf("life %d: an open reads %d bytes, want at most %d", life, read, limit)
		}
		if r.log.Phase() != core.Ready {
			t.Fatalf("life %d: %v", life, r.log.Err())
		}
		r.wantNoMarks(core.MarkCorrupt, core.MarkAllowDamaged)
		r.pump()
		if life%10 == 0 {
			r.wantRecords(0, 20*life+20)
		}
	}
	r.wantRecords(0, 2000)
}

// TestIX5OpenChangesNoIndex: opens without appends leave every index byte for byte as it was, and
// what an open derives says what the index gathered by the appends says.
func TestIX5OpenChangesNoIndex(t *testing.T) {
	cfg := tableConfig()
	cfg.IndexSpacingBytes = 1
	img := withSidecar(t, cfg)
	r := newRig(t)
	r.restore(img)
	for range 5 {
		r.open(cfg)
		r.close()
		now := imageOf(r)
		for _, name := range append(img.derived(), segments(img)...) {
			if f := now.get(name); f == nil || string(f.data) != string(img.get(name).data) {
				t.Fatalf("%s was changed by an open", name)
			}
		}
		if len(now.derived()) != len(img.derived()) {
			t.Fatalf("indexes %v became %v", img.derived(), now.derived())
		}
	}
	name := segments(img)[1]
	sealed := img.get(name).data
	_, id, _, _ := segment.ParseName(name)
	want, from, ok := segment.ReadTrailer(sealed, int64(len(sealed)), cfg.LogID, id, false)
	if !ok {
		t.Fatal("the sealed segment has no footer")
	}
	cut := img.cut(name, want.DataEnd)
	r.restore(cut)
	r.open(cfg)
	side := imageOf(r).get(name[:len(name)-4] + ".idx")
	if side == nil {
		t.Fatal("no index was derived")
	}
	got, derived, ok := segment.ReadTrailer(side.data, int64(len(side.data)), cfg.LogID, want.ID, true)
	if !ok || got != want || derived.Entries != from.Entries || derived.Producers != from.Producers {
		t.Fatalf("derived %+v, gathered %+v", got, want)
	}
	buf := make([]byte, segment.IndexBlockBytes)
	for o := want.Base; o < want.End; o++ {
		p1, b1, ok1 := from.Seek(bytesAt(sealed), o, buf)
		p2, b2, ok2 := derived.Seek(bytesAt(side.data), o, buf)
		if p1 != p2 || b1 != b2 || !ok1 || !ok2 {
			t.Fatalf("offset %d: at %d by the one, at %d by the other", o, p1, p2)
		}
	}
}

// TestIX6RandomBytesInDerivedFiles: any bytes in whatever can be derived, and files that cover the
// same offsets twice, as a crash between "copied" and "removed" leaves them. All is derived again; a
// file goes only if nothing is served from it by name.
func TestIX6RandomBytesInDerivedFiles(t *testing.T) {
	cfg := tableConfig()
	img := withSidecar(t, cfg)
	var draw faultfs.Rand
	draw.Seed(6)
	noise := func(b []byte, from int) []byte {
		for range 1 + draw.Below(40) {
			b[uint64(from)+draw.Below(uint64(len(b)-from))] = byte(draw.Next())
		}
		if draw.Below(3) == 0 {
			b = b[:uint64(from)+draw.Below(uint64(len(b)-from))]
		}
		return b
	}
	sealed := segments(img)[1]
	list := img.batches(t, sealed)
	behind := int(list[len(list)-1].end)
	for round := range 200 {
		bad := img.edited(img.derived()[0], func(b []byte) []byte { return noise(b, 0) }).
			edited(sealed, func(b []byte) []byte { return noise(b, behind) })
		r := newRig(t)
		r.restore(bad)
		r.open(cfg)
		r.wantRecords(0, 80)
		r.wantServedFilesThere()
		r.close()
		r.open(cfg)
		if p := r.log.Plan(); !p.Empty() || p.Torn {
			t.Fatalf("round %d: the second plan is not empty", round)
		}
	}
	whole := crashed(t, cfg, 3, 60)
	for _, spoilt := range []image{
		opened(t, whole).with(segments(whole)[0], whole.get(segments(whole)[0]).data),
		opened(t, crashed(t, cfg, 1, 60)).with(segName(0, 1, 1), crashed(t, cfg, 1, 60).get(segName(0, 1, 1)).data),
	} {
		for _, vouched := range []bool{true, false} {
			if !vouched {
				spoilt = spoilt.without(spoilt.derived()...)
			}
			r := newRig(t)
			r.restore(spoilt)
			r.open(cfg)
			r.wantServedFilesThere()
			r.wantRecords(0, int(r.log.End()))
		}
	}
}

// wantServedFilesThere wants the file of every extent to be there, under its name.
func (r *rig) wantServedFilesThere() {
	r.t.Helper()
	now := imageOf(r)
	r.log.FillView(&r.view)
	for i := range r.view.Extents {
		if x := &r.view.Extents[i]; now.get(segment.Name(x.Base, x.Segment)) == nil {
			r.t.Errorf("[%d, %d) is served from %s, which is gone", x.First, x.End, segment.Name(x.Base, x.Segment))
		}
	}
}
