package core_test

import (
	"errors"
	"fmt"
	"testing"

	"varve/core"
	"varve/core/segment"
)

// TestZF1ZerosAfterPartOfARecord: the first m bytes of the last record are there, zeros follow, up to
// 4 KiB and 16 MiB. That is torn, but for one case: every sector of a batch that was synced on commit
// holds something, and its checksum is wrong. No device leaves that, so it is damage, and named.
func TestZF1ZerosAfterPartOfARecord(t *testing.T) {
	refused := 0
	for _, mode := range allModes {
		cfg := tableConfig()
		cfg.Sync = mode
		img := crashed(t, cfg, 3, 900)
		name := segments(img)[0]
		last := img.batches(t, name)[2]
		sectors := (last.end - 1) &^ 511 // where the last sector of the record begins
		for _, size := range []int64{4 << 10, 16 << 20} {
			for m := int64(1); m < last.end-last.pos; m += 1 + m%3 {
				if size > 4<<10 && m < 600 {
					continue // the large file twice
				}
				if size > 4<<10 && m < last.end-last.pos-4 && m > 603 {
					continue
				}
				r := newRig(t)
				r.restore(img.edited(name, func(b []byte) []byte {
					return append(b[:last.pos+m:last.pos+m], make([]byte, size-last.pos-m)...)
				}))
				r.start(cfg)
				if mode == segment.OnCommit && last.pos+m > sectors {
					var damage *core.CorruptError
					if !errors.As(r.log.Err(), &damage) || damage.Name() != name || damage.Offset != 2 || writes(r.disk) != 0 {
						t.Fatalf("%d bytes: %v, %v", m, r.log.Phase(), r.log.Err())
					}
					refused++
					cfg := cfg
					cfg.RepairChecksumTail = true
					r.kill()
					r.start(cfg)
				}
				if r.log.Phase() != core.Ready {
					t.Fatalf("%v, %d bytes: %v, %v", mode, m, r.log.Phase(), r.log.Err())
				}
				r.wantRecords(0, 2)
				r.put(2, 4, 50)
				r.kill()
				r.open(cfg)
				r.wantRecords(0, 4)
			}
		}
	}
	if refused == 0 {
		t.Error("no checksum was found wrong in whole sectors")
	}
}

// TestZF2RecordsReplacedByZeros: the size is there, whole records at the end are zeros. What was not
// proven is gone, and the log opens; what was proven is missed aloud.
func TestZF2RecordsReplacedByZeros(t *testing.T) {
	for _, mode := range allModes {
		cfg := tableConfig()
		cfg.Sync = mode
		img := crashed(t, cfg, 6, 200)
		name := segments(img)[0]
		list := img.batches(t, name)
		for from := range list { // headers prove only what lies before them
			r := newRig(t)
			r.restore(img.edited(name, func(b []byte) []byte { clear(b[list[from].pos:]); return b }))
			r.start(cfg)
			if r.log.Phase() != core.Ready {
				t.Errorf("%v, zeros from record %d: %v", mode, from, r.log.Err())
				continue
			}
			r.wantRecords(0, from)
		}
	}
	cfg := tableConfig()
	r := newRig(t)
	r.open(cfg)
	r.put(0, 6, 200)
	r.pass(cfg.IdleSave) // a superblock proves all six
	r.kill()
	img := imageOf(r)
	name := segments(img)[0]
	list := img.batches(t, name)
	for from := range list {
		r := newRig(t)
		r.restore(img.edited(name, func(b []byte) []byte { clear(b[list[from].pos:]); return b }))
		r.start(cfg)
		var lost *core.LostSuffixError
		var damage *core.CorruptError
		switch err := r.log.Err(); {
		case r.log.Phase() != core.Failed:
			t.Errorf("synced records from %d on are zeros: %v", from, r.log.Phase())
		case errors.As(err, &lost) && (lost.End != core.Offset(from) || lost.Evidence != 6),
			errors.As(err, &damage) && damage.Offset != core.Offset(from),
			lost == nil && damage == nil:
			t.Errorf("synced records from %d on are zeros: %v", from, err)
		}
		if writes(r.disk) != 0 {
			t.Error("the refused open wrote")
		}
	}
}

// TestZF3UnfinishedNewestSegment: the newest segment is empty, or its header was written in part,
// beside good ones: its creation did not complete. It goes, and its base offset is given again.
func TestZF3UnfinishedNewestSegment(t *testing.T) {
	img := rolled(t)
	header := img.get(segments(img)[0]).data[:512]
	next := segName(6, 1, 4)
	for size := 0; size <= 512; size += 1 + size/3 {
		for _, zeros := range []int{0, 512 - size, 4096 - size} {
			c := row{
				img:  img.with(next, append(append([]byte(nil), header[:size]...), make([]byte, zeros)...)),
				want: want{records: 6, gone: []string{next}, marks: []core.Mark{core.MarkUnfinished}},
			}
			if size >= segment.HeaderBytes { // a whole header, of another file: not ours to remove
				c.want.gone, c.want.moved, c.want.marks = nil, []string{next}, []core.Mark{core.MarkQuarantine}
			}
			t.Run(fmt.Sprintf("%d bytes, %d zeros", size, zeros), c.check)
		}
	}
}

// TestZF5APageOfZerosBehindTheEnd: exactly one page of zeros after the last valid record, in a file
// that was not zero-filled. The checksum of an all-zero header must not verify.
func TestZF5APageOfZerosBehindTheEnd(t *testing.T) {
	for _, mode := range allModes {
		cfg := tableConfig()
		cfg.Sync = mode
		img := crashed(t, cfg, 3, 100)
		name := segments(img)[0]
		end := img.batches(t, name)[2].end
		r := newRig(t)
		r.restore(img.edited(name, func(b []byte) []byte { return append(b[:end:end], make([]byte, 4096)...) }))
		r.open(cfg)
		r.wantRecords(0, 3)
		r.wantNoMarks(core.MarkTornTail, core.MarkCorrupt)
	}
	if _, _, _, ok := segment.ReadBatchHeader(make([]byte, segment.BatchHeaderBytes), 0, 0); ok {
		t.Error("a batch header of zeros verifies")
	}
	if _, _, v, _ := segment.ReadHeader(make([]byte, segment.HeaderBytes)); v == segment.HeaderGood {
		t.Error("a segment header of zeros verifies")
	}
	if segment.ReadSuper(make([]byte, 4096), new(segment.Superblock)) == nil {
		t.Error("a superblock of zeros verifies")
	}
	if _, _, ok := segment.ReadTrailer(make([]byte, 4096), 4096, segment.LogID{}, 0, false); ok {
		t.Error("a footer of zeros verifies")
	}
}

// TestZF7SuperblockNamesWhatIsDurable: what a superblock proves (ours to name, as a manifest does) is
// never ahead of the data. With the order of calls broken on purpose - the data of a sealed segment
// gone, the superblock there - the error names the segment.
func TestZF7SuperblockNamesWhatIsDurable(t *testing.T) {
	cfg := tableConfig()
	r := newRig(t)
	r.open(cfg)
	for i := range 4 { // after each save, what a power loss leaves holds all that it names
		r.put(2*i, 2*i+2, 200)
		if err := r.log.Roll(r.now); err != nil {
			t.Fatal(err)
		}
		r.pump()
		r.pass(cfg.IdleSave)
		r.power()
		r.open(cfg)
		r.wantRecords(0, 2*i+2)
	}
	r.close()
	img := imageOf(r)
	for _, name := range segments(img)[:3] {
		for _, size := range []int64{0, 100, 512} {
			spoilt := img.cut(name, size)
			spoilt = spoilt.without(name[:len(name)-4] + ".idx")
			r := newRig(t)
			r.restore(spoilt)
			r.start(cfg)
			var damage *core.CorruptError
			base, _, _, _ := segment.ParseName(name)
			if !errors.As(r.log.Err(), &damage) || damage.Name() != name || damage.Offset != base {
				t.Errorf("%s cut to %d bytes: %v, %v", name, size, r.log.Phase(), r.log.Err())
			}
			if writes(r.disk) != 0 {
				t.Error("the refused open wrote")
			}
		}
	}
}
