package core_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"varve/core"
	"varve/core/segment"
)

// want is what an open of a spoilt image must come to.
type want struct {
	records int         // served from the start on, if it opens
	start   core.Offset // first record served
	epoch   core.Epoch  // claimed; 0: not looked at
	marks   []core.Mark
	absent  []core.Mark

	corrupt *core.CorruptError // refused: Name, Pos and Offset must match
	lost    *core.LostSuffixError
	refused string // refused by a RefusedError of this file; "directory" for none

	gone  []string // files that are not there afterwards
	moved []string // files that are in quarantine afterwards
}

type row struct {
	name string
	cfg  func(*core.Config)
	img  image
	want want
}

// check opens an image and compares. An open that succeeds must leave every segment of an earlier
// life as it was or remove it whole, and a second open must find nothing to do.
func (c *row) check(t *testing.T) {
	t.Helper()
	cfg := tableConfig()
	if c.cfg != nil {
		c.cfg(&cfg)
	}
	r := newRig(t)
	r.restore(c.img)
	r.start(cfg)
	r.wantMarks(c.want.marks...)
	r.wantNoMarks(c.want.absent...)
	if c.want.corrupt != nil || c.want.lost != nil || c.want.refused != "" {
		c.checkRefused(t, r)
		return
	}
	if r.log.Phase() != core.Ready {
		t.Fatalf("open ends in %v: %v", r.log.Phase(), r.log.Err())
	}
	if r.log.Start() != c.want.start {
		t.Errorf("start %d, want %d", r.log.Start(), c.want.start)
	}
	if c.want.epoch != 0 && r.log.Epoch() != c.want.epoch {
		t.Errorf("epoch %d, want %d", r.log.Epoch(), c.want.epoch)
	}
	r.wantRecords(int(c.want.start), c.want.records)
	r.wantUnchanged(c.img, c.want.gone, c.want.moved)
	if v := r.disk.Violation(); v != "" {
		t.Error(v)
	}
	r.wantSecondPlanEmpty(cfg, int(c.want.start), c.want.records)
	r.open(cfg)
	r.put(c.want.records, c.want.records+2, 30)
	r.kill()
	r.open(cfg)
	r.wantRecords(int(c.want.start), c.want.records+2)
}

func (c *row) checkRefused(t *testing.T, r *rig) {
	t.Helper()
	err := r.log.Err()
	if r.log.Phase() != core.Failed {
		t.Fatalf("open ends in %v: %v", r.log.Phase(), err)
	}
	var corrupt *core.CorruptError
	var lost *core.LostSuffixError
	var refused *core.RefusedError
	switch {
	case c.want.corrupt != nil:
		w := c.want.corrupt
		if !errors.As(err, &corrupt) || corrupt.Segment != w.Segment || corrupt.Base != w.Base ||
			corrupt.Pos != w.Pos || corrupt.Offset != w.Offset {
			t.Errorf("error %v, want one that names %s at byte %d, offset %d", err, w.Name(), w.Pos, w.Offset)
		}
	case c.want.lost != nil:
		if !errors.As(err, &lost) || *lost != *c.want.lost {
			t.Errorf("error %v, want %v", err, c.want.lost)
		}
	default:
		if !errors.As(err, &refused) || refused.Next == "" || !strings.Contains(err.Error(), c.want.refused) {
			t.Errorf("error %v, want one that names %s and says what to do", err, c.want.refused)
		}
	}
	if writes(r.disk) != 0 {
		t.Errorf("an open that was refused made the calls %s", calls(r))
	}
}

// wantUnchanged wants every segment of the image as it was, except those that are gone or moved.
func (r *rig) wantUnchanged(before image, gone, moved []string) {
	r.t.Helper()
	after := imageOf(r)
	is := func(name string, list []string) bool {
		for _, n := range list {
			if n == name {
				return true
			}
		}
		return false
	}
	for _, f := range before {
		if strings.HasPrefix(f.name, "super.") {
			continue
		}
		now := after.get(f.name)
		switch {
		case is(f.name, gone):
			if now != nil {
				r.t.Errorf("%s is still there", f.name)
			}
		case is(f.name, moved):
			if q := after.get("quarantine/" + f.name); now != nil || q == nil || !bytes.Equal(q.data, f.data) {
				r.t.Errorf("%s is not in quarantine as it was", f.name)
			}
		case now == nil:
			r.t.Errorf("%s is gone", f.name)
		case !bytes.Equal(now.data, f.data) && !strings.HasSuffix(f.name, ".idx"):
			r.t.Errorf("%s was changed", f.name)
		}
	}
}

// wantSecondPlanEmpty kills the process and wants another open to find nothing to do, and the same
// records: recovery of what was recovered is the same.
func (r *rig) wantSecondPlanEmpty(cfg core.Config, first, end int) {
	r.t.Helper()
	r.kill()
	cfg.ReadOnly = true
	r.start(cfg)
	if r.log.Phase() != core.Planned {
		r.t.Fatalf("second open: %v, %v", r.log.Phase(), r.log.Err())
	}
	if p := r.log.Plan(); !p.Empty() || p.Torn {
		r.t.Errorf("the second plan is not empty: rescues %v, torn %v", p.Rescues, p.Torn)
		for i := range p.Files {
			r.t.Logf("%s: %v", segment.Name(p.Files[i].Entry.Base, p.Files[i].Entry.ID), p.Files[i].Fate)
		}
	}
	r.wantRecords(first, end)
	r.kill()
}

func corruptAt(name string, pos int64, o core.Offset) *core.CorruptError {
	base, id, _, _ := segment.ParseName(name)
	return &core.CorruptError{Segment: id, Base: base, Pos: pos, Offset: o}
}

func lostAt(end, evidence core.Offset, name string, pos int64) *core.LostSuffixError {
	base, id, _, _ := segment.ParseName(name)
	return &core.LostSuffixError{End: end, Evidence: evidence, Segment: id, Base: base, Pos: pos}
}

// TestTornAtEveryByte: the last batch, which nothing proves, cut at every byte.
func TestTornAtEveryByte(t *testing.T) {
	for _, mode := range []segment.SyncMode{segment.OnCommit, segment.Periodic, segment.NoSync} {
		cfg := tableConfig()
		cfg.Sync = mode
		img := crashed(t, cfg, 3, 40)
		name := segments(img)[0]
		list := img.batches(t, name)
		last := list[2]
		for pos := last.pos; pos <= last.end; pos++ {
			c := row{
				cfg:  func(c *core.Config) { c.Sync = mode },
				img:  img.cut(name, pos),
				want: want{records: 2, marks: []core.Mark{core.MarkTornTail, core.MarkRescue}},
			}
			switch pos {
			case last.pos: // nothing is there at all
				c.want.marks, c.want.absent = nil, []core.Mark{core.MarkTornTail}
			case last.end:
				c.want = want{records: 3, marks: []core.Mark{core.MarkRescue}, absent: []core.Mark{core.MarkTornTail}}
			}
			if mode == segment.OnCommit && pos < last.end {
				c.want.marks = c.want.marks[:len(c.want.marks)/2] // its second batch is evidence for the first alone
			}
			if mode != segment.OnCommit {
				c.want.gone = []string{name} // nothing in it was proven: it is replaced whole
			}
			t.Run(fmt.Sprintf("%v/%d", mode, pos-last.pos), c.check)
		}
	}
}

func TestVerdictsAtTheEnd(t *testing.T) {
	img := crashed(t, tableConfig(), 4, 1500) // each batch touches at least three sectors
	name := segments(img)[0]
	list := img.batches(t, name)
	last, inner := list[3], list[1]
	zero := func(from, n int64) image {
		return img.edited(name, func(b []byte) []byte { clear(b[from : from+n]); return b })
	}
	periodic := func(c *core.Config) { c.Sync = segment.Periodic }
	cfg := tableConfig()
	periodic(&cfg)
	period := crashed(t, cfg, 4, 1500)
	tight := period.batches(t, name)[3] // without a sync nothing is rounded up
	rows := []row{
		{
			name: "first sector zero", img: zero(last.pos, 512),
			want: want{records: 3, marks: []core.Mark{core.MarkTornTail}},
		},
		{
			name: "middle sector zero", img: zero(last.pos+512, 512),
			want: want{records: 3, marks: []core.Mark{core.MarkTornTail}},
		},
		{
			name: "last sector zero", img: zero(last.pos+1536, last.end-last.pos-1536),
			want: want{records: 3, marks: []core.Mark{core.MarkTornTail}, absent: []core.Mark{core.MarkRefusedChecksum}},
		},
		{
			name: "all zero", img: zero(last.pos, last.end-last.pos),
			want: want{records: 3, absent: []core.Mark{core.MarkTornTail}},
		},
		{
			name: "header flipped", img: img.flipped(name, last.pos+20),
			want: want{records: 3, marks: []core.Mark{core.MarkTornTail}},
		},
		{
			name: "payload flipped, every sector written", img: img.flipped(name, last.pos+700),
			want: want{corrupt: corruptAt(name, last.pos, 3), marks: []core.Mark{core.MarkRefusedChecksum}},
		},
		{
			name: "payload flipped, repair_checksum_tail", img: img.flipped(name, last.pos+700),
			cfg:  func(c *core.Config) { c.RepairChecksumTail = true },
			want: want{records: 3, marks: []core.Mark{core.MarkTornChecksum}, absent: []core.Mark{core.MarkRefusedChecksum}},
		},
		{
			name: "payload flipped, file written under periodic", img: period.flipped(name, tight.pos+700), cfg: periodic,
			want: want{records: 3, gone: []string{name}, marks: []core.Mark{core.MarkTornChecksum, core.MarkSuperseded}, absent: []core.Mark{core.MarkRefusedChecksum}},
		},
		{
			name: "the last batch lies behind a break, above evidence", img: behindBreak(period, name, tight), cfg: periodic,
			want: want{records: 4, gone: []string{name}, marks: []core.Mark{core.MarkRescue, core.MarkSuperseded}, absent: []core.Mark{core.MarkReplan}},
		},
		{
			name: "the whole batch is there", img: img,
			want: want{records: 4, marks: []core.Mark{core.MarkRescue, core.MarkFooterDerived, core.MarkSidecarSaved}},
		},
		{
			name: "damage below evidence, in a payload", img: img.flipped(name, inner.pos+700),
			want: want{corrupt: corruptAt(name, inner.pos, 1), marks: []core.Mark{core.MarkCorrupt, core.MarkEvidenceBehind}},
		},
		{
			name: "damage below evidence, in a header", img: img.flipped(name, inner.pos+50),
			want: want{corrupt: corruptAt(name, list[0].end, 1), marks: []core.Mark{core.MarkCorrupt, core.MarkEvidenceBehind}},
		},
		{
			name: "damage right below evidence, behind it only a torn batch", img: img.flipped(name, list[2].pos+50).cut(name, last.pos+200),
			want: want{corrupt: corruptAt(name, list[1].end, 2), marks: []core.Mark{core.MarkCorrupt}},
		},
		{
			name: "header of the file flipped", img: img.flipped(name, 40),
			want: want{records: 4, marks: []core.Mark{core.MarkHeaderByName}},
		},
		{
			name: "header sector of the file zero", img: zero(0, 512),
			want: want{records: 4, marks: []core.Mark{core.MarkHeaderByName}},
		},
		{name: "padding flipped", img: img.flipped(name, inner.pos-10), want: want{records: 4}},
	}
	for i := range rows {
		t.Run(rows[i].name, rows[i].check)
	}
}

// behindBreak moves a batch to the next but one sector boundary, over bytes that are no batch.
func behindBreak(m image, name string, p place) image {
	return m.edited(name, func(b []byte) []byte {
		raw := append([]byte(nil), b[p.pos:p.end]...)
		b[p.pos+20] ^= 1
		at := (p.end + 1023) / 512 * 512
		return append(append(b[:p.end:p.end], make([]byte, at-p.end)...), raw...)
	})
}

func TestLostSuffix(t *testing.T) {
	r := newRig(t)
	cfg := tableConfig()
	r.open(cfg)
	r.put(0, 5, 20)
	r.pass(cfg.IdleSave) // the frontier goes into a superblock
	r.kill()
	img := imageOf(r)
	name := segments(img)[0]
	list := img.batches(t, name)
	sealed := rolled(t)
	names := segments(sealed)
	rows := []row{
		{
			name: "cut at a batch", img: img.cut(name, list[3].pos),
			want: want{lost: lostAt(3, 5, name, list[2].end), marks: []core.Mark{core.MarkLostSuffix}},
		},
		{
			name: "cut inside a batch", img: img.cut(name, list[3].pos+30),
			want: want{corrupt: corruptAt(name, list[2].end, 3), marks: []core.Mark{core.MarkCorrupt}},
		},
		{
			name: "cut at the first batch", img: img.cut(name, list[0].pos),
			want: want{lost: lostAt(0, 5, name, list[0].pos), marks: []core.Mark{core.MarkLostSuffix}},
		},
		{
			name: "all segments missing", img: img.without(name),
			want: want{lost: &core.LostSuffixError{End: 0, Evidence: 5}, marks: []core.Mark{core.MarkLostSuffix}},
		},
		{
			name: "last segment missing", img: sealed.without(names[2]),
			want: want{lost: lostAt(4, 6, names[1], sealed.batches(t, names[1])[1].end), marks: []core.Mark{core.MarkLostSuffix}},
		},
		{
			name: "middle segment missing", img: sealed.without(names[1]),
			want: want{corrupt: corruptAt(names[0], sealed.batches(t, names[0])[1].end, 2), marks: []core.Mark{core.MarkCorrupt, core.MarkEvidenceBehind}},
		},
		{
			name: "first segment missing", img: sealed.without(names[0]),
			want: want{corrupt: &core.CorruptError{Pos: -1}, marks: []core.Mark{core.MarkCorrupt}},
		},
	}
	for i := range rows {
		t.Run(rows[i].name, rows[i].check)
	}
}

func TestRefusals(t *testing.T) {
	img := rolled(t)
	names := segments(img)
	other := newRig(t)
	cfg := tableConfig()
	cfg.LogID = segment.LogID{9}
	other.open(cfg)
	other.put(0, 2, 20)
	other.close()
	foreign := imageOf(other)
	version := func(b []byte) []byte { b[8] = 2; return b }
	ahead := crashed(t, tableConfig(), 2, 20)
	r := newRig(t)
	r.restore(ahead)
	r.open(tableConfig())
	r.put(2, 4, 20)
	r.kill()
	later := imageOf(r)
	super := len(img.get("super.0").data)
	used := func(b []byte) int { return int(b[12]) + int(b[13])<<8 }
	rows := []row{
		{
			name: "segment of another log", img: img.with(names[2], foreign.get(names[0]).data),
			want: want{refused: names[2], marks: []core.Mark{core.MarkForeign}},
		},
		{
			name: "slot of another log", img: img.with("super.1", foreign.get("super.1").data),
			want: want{refused: "super.", marks: []core.Mark{core.MarkForeign}},
		},
		{
			name: "segment of a newer version", img: img.edited(names[1], func(b []byte) []byte { return reseal(version(b), 128) }),
			want: want{refused: names[1], marks: []core.Mark{core.MarkSuperNewer}},
		},
		{
			name: "slot of a newer version", img: img.edited("super.1", func(b []byte) []byte { n := used(b); return reseal(version(b), n) }),
			want: want{refused: "super.1", marks: []core.Mark{core.MarkSuperNewer}},
		},
		{
			name: "no slot but segments", img: img.without("super.0", "super.1"),
			want: want{refused: names[0], marks: []core.Mark{core.MarkSuperRefused}},
		},
		{
			name: "both slots damaged", img: img.flipped("super.0", 30).flipped("super.1", 30),
			want: want{refused: "super.0", marks: []core.Mark{core.MarkSuperRefused}},
		},
		{
			name: "both slots empty", img: img.cut("super.0", 0).cut("super.1", 0),
			want: want{refused: "super.0", marks: []core.Mark{core.MarkSuperRefused}},
		},
		{name: "a directory of something else", img: image{{"notes.txt", []byte("hello")}}, want: want{refused: "directory"}},
		{
			name: "superblock of an earlier life", img: later.with("super.0", ahead.get("super.0").data).with("super.1", ahead.get("super.1").data),
			want: want{refused: segName(2, 2, 2), marks: []core.Mark{core.MarkEpochAhead}},
		},
		{
			name: "slot larger than any", img: img.with("super.0", make([]byte, segment.SuperBytesMax+8192)),
			want: want{records: 6, marks: []core.Mark{core.MarkSuperOneSlot}},
		},
		{name: "slot zero", img: img.with("super.0", make([]byte, super)), want: want{records: 6, marks: []core.Mark{core.MarkSuperOneSlot}}},
		{name: "slot 0 damaged", img: img.flipped("super.0", 90), want: want{records: 6, marks: []core.Mark{core.MarkSuperOneSlot}}},
		{name: "slot 1 damaged", img: img.flipped("super.1", 90), want: want{records: 6, marks: []core.Mark{core.MarkSuperOneSlot}}},
		{name: "slot 0 missing", img: img.without("super.0"), want: want{records: 6, marks: []core.Mark{core.MarkSuperOneSlot}}},
		{name: "slot 1 missing", img: img.without("super.1"), want: want{records: 6, marks: []core.Mark{core.MarkSuperOneSlot}}},
		{name: "a name that is not ours", img: img.with("notes.txt", []byte("hello")), want: want{records: 6}},
		{name: "clean", img: img, want: want{
			records: 6, marks: []core.Mark{core.MarkCleanOpen},
			absent: []core.Mark{core.MarkRescue, core.MarkTornTail, core.MarkSuperOneSlot, core.MarkFooterDerived},
		}},
		{name: "empty directory", img: image{}, want: want{records: 0, marks: []core.Mark{core.MarkNewLog}}},
	}
	for i := range rows {
		t.Run(rows[i].name, rows[i].check)
	}
}
