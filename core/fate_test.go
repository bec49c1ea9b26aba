package core_test

import (
	"errors"
	"testing"

	"varve/core"
)

// TestFates: files that serve nothing.
func TestFates(t *testing.T) {
	img := rolled(t)
	names := segments(img)
	first := img.get(names[0]).data
	header := first[:512]
	next := segName(6, 1, 9) // where a segment after the end would be
	open := crashed(t, tableConfig(), 3, 20)
	whole := crashed(t, tableConfig(), 1, 20)
	leftover, start := trimmed(t, img)
	void := voided(t)
	two := crashed(t, tableConfig(), 2, 20)
	forgotten := two.with(segName(2, 2, 2), unfinished(t, nil).get(segName(2, 2, 2)).data)
	rows := []row{
		{
			name: "misnamed, other id", img: img.with(segName(0, 1, 9), first),
			want: want{records: 6, moved: []string{segName(0, 1, 9)}, marks: []core.Mark{core.MarkQuarantine}},
		},
		{
			name: "misnamed, other base", img: img.with(segName(3, 1, 1), first),
			want: want{records: 6, moved: []string{segName(3, 1, 1)}, marks: []core.Mark{core.MarkQuarantine}},
		},
		{
			name: "misnamed, lower base", img: img.with(segName(1, 1, 3), img.get(names[2]).data),
			want: want{records: 6, moved: []string{segName(1, 1, 3)}, marks: []core.Mark{core.MarkQuarantine}},
		},
		{
			name: "misnamed, lower base than what is rescued", img: open.with(segName(1, 1, 1), open.get(segName(0, 1, 1)).data),
			want: want{records: 3, moved: []string{segName(1, 1, 1)}, marks: []core.Mark{core.MarkQuarantine, core.MarkRescue}},
		},
		{
			name: "creation, 0 bytes", img: img.with(next, nil),
			want: want{records: 6, gone: []string{next}, marks: []core.Mark{core.MarkUnfinished, core.MarkRemoved}},
		},
		{
			name: "creation, header cut", img: img.with(next, header[:100]),
			want: want{records: 6, gone: []string{next}, marks: []core.Mark{core.MarkUnfinished}},
		},
		{
			name: "creation, header only", img: unfinished(t, nil),
			want: want{records: 2, gone: []string{segName(2, 2, 2)}, marks: []core.Mark{core.MarkUnfinished}},
		},
		{
			name: "creation, first batch torn", img: unfinished(t, []byte("VRVB and then nothing that verifies")),
			want: want{records: 2, gone: []string{segName(2, 2, 2)}, marks: []core.Mark{core.MarkUnfinished, core.MarkTornTail}},
		},
		{
			name: "creation by an epoch that the superblock forgot", img: forgotten,
			want: want{records: 2, epoch: 3, gone: []string{segName(2, 2, 2)}, marks: []core.Mark{core.MarkUnfinished}},
		},
		{
			name: "tmp files", img: img.with("super.0.tmp", header).with(next+".tmp", first),
			want: want{records: 6, gone: []string{"super.0.tmp", next + ".tmp"}, marks: []core.Mark{core.MarkTmp}},
		},
		{
			name: "orphaned sidecar", img: img.with(next[:len(next)-4]+".idx", first),
			want: want{records: 6, gone: []string{next[:len(next)-4] + ".idx"}},
		},
		{
			name: "below HotStart", img: leftover,
			want: want{start: start, records: 6, gone: []string{names[0]}, marks: []core.Mark{core.MarkLeftover, core.MarkRemoved}},
		},
		{name: "void by lineage", img: void, want: want{records: 5, marks: []core.Mark{core.MarkVoidFile}}},
		{
			name: "superseded by the rescue of this open", img: whole,
			want: want{records: 1, gone: []string{segName(0, 1, 1)}, marks: []core.Mark{core.MarkRescue, core.MarkSuperseded}},
		},
		{
			name: "superseded by an earlier rescue", img: opened(t, whole).with(segName(0, 1, 1), whole.get(segName(0, 1, 1)).data),
			want: want{records: 1, gone: []string{segName(0, 1, 1)}, marks: []core.Mark{core.MarkSuperseded}, absent: []core.Mark{core.MarkRescue}},
		},
		{
			name: "served through its sidecar", img: opened(t, open),
			want: want{records: 3, marks: []core.Mark{core.MarkSidecarUsed}, absent: []core.Mark{core.MarkRescue, core.MarkFooterDerived}},
		},
		{
			name: "sidecar damaged", img: flipIndex(opened(t, open)),
			want: want{records: 3, marks: []core.Mark{core.MarkFooterDerived, core.MarkSidecarSaved}, absent: []core.Mark{core.MarkSidecarUsed}},
		},
		{
			name: "footer damaged", img: img.flipped(names[1], int64(len(img.get(names[1]).data))-20),
			want: want{records: 6, marks: []core.Mark{core.MarkFooterDerived, core.MarkSidecarSaved}},
		},
	}
	for i := range rows {
		t.Run(rows[i].name, rows[i].check)
	}
}

// opened is an image after an open and a kill without appends.
func opened(t *testing.T, img image) image {
	t.Helper()
	r := newRig(t)
	r.restore(img)
	r.open(tableConfig())
	r.kill()
	return imageOf(r)
}

// trimmed is a log whose first segment went by Trim and came back.
func trimmed(t *testing.T, img image) (image, core.Offset) {
	t.Helper()
	r := newRig(t)
	r.restore(img)
	r.open(tableConfig())
	if err := r.log.Trim(r.now, 3); err != nil {
		t.Fatal(err)
	}
	r.pump()
	r.wantMarks(core.MarkTrim, core.MarkTrimInside, core.MarkRemoved)
	r.close()
	name := segments(img)[0]
	if imageOf(r).get(name) != nil {
		t.Fatal("Trim left the file")
	}
	return imageOf(r).with(name, img.get(name).data), 3
}

// unfinished is a second life that died in the creation of its first segment.
func unfinished(t *testing.T, tail []byte) image {
	t.Helper()
	r := newRig(t)
	r.restore(crashed(t, tableConfig(), 2, 20))
	r.open(tableConfig())
	r.append(2)
	r.finish(r.issue(core.Tail))
	r.kill()
	return imageOf(r).edited(segName(2, 2, 2), func(b []byte) []byte { return append(b, tail...) })
}

// voided is a log whose first life lost a segment that comes back after a second life wrote its own
// records at those offsets.
func voided(t *testing.T) image {
	t.Helper()
	r := newRig(t)
	r.open(tableConfig())
	r.put(0, 3, 20)
	if err := r.log.Roll(r.now); err != nil {
		t.Fatal(err)
	}
	r.pump()
	r.put(3, 8, 20) // its headers prove up to 7, in an epoch that will end at 3
	r.kill()
	img := imageOf(r)
	name := segName(3, 1, 2)
	r.restore(img.without(name))
	r.open(tableConfig())
	if r.log.Committed() != 3 {
		t.Fatalf("committed %d without the lost segment", r.log.Committed())
	}
	r.put(3, 5, 30)
	r.close()
	return imageOf(r).with(name, img.get(name).data)
}

func flipIndex(m image) image {
	for _, f := range m {
		if f.name[len(f.name)-4:] == ".idx" {
			return m.flipped(f.name, int64(len(f.data))-20)
		}
	}
	return nil
}

// TestIncompleteOpen: an open that dies after each of its effects, then another one.
func TestIncompleteOpen(t *testing.T) {
	img := crashed(t, tableConfig(), 3, 20)
	for n := 0; ; n++ {
		r := newRig(t)
		r.restore(img)
		log, err := core.Open(tableConfig(), r.now)
		if err != nil {
			t.Fatal(err)
		}
		r.log = log
		done := 0
		for done < n && log.Phase() == core.Opening {
			r.finish(r.issue(core.Hot))
			done++
		}
		ready := log.Phase() == core.Ready
		r.kill()
		r.open(tableConfig())
		r.wantRecords(0, 3)
		r.wantUnchanged(img, nil, nil)
		incomplete, again := r.log.Marks().Has(core.MarkIncompleteOpen), r.log.Marks().Has(core.MarkRescueReplacement)
		// List, LoadSuper, Scan, raise, Replace, finish, finish.
		if wantIncomplete, wantAgain := n == 4 || n == 5, n == 5; incomplete != wantIncomplete || again != wantAgain {
			t.Errorf("after %d effects: incomplete %v, rescued again %v", n, incomplete, again)
		}
		r.wantSecondPlanEmpty(tableConfig(), 0, 3)
		if ready {
			if n != 7 {
				t.Errorf("an open with a rescue takes %d effects", n)
			}
			return
		}
	}
}

// TestAllowDamaged: what is damaged gives an error that names the place; all the rest is served.
func TestAllowDamaged(t *testing.T) {
	one := crashed(t, tableConfig(), 5, 700)
	name := segments(one)[0]
	list := one.batches(t, name)
	sealed := rolled(t)
	names := segments(sealed)
	for _, tt := range []struct {
		name       string
		img        image
		records    int
		from, till core.Offset // damaged
		file       string
	}{
		{"a payload", one.flipped(name, list[1].pos+300), 5, 1, 2, name},
		{"a header", one.flipped(name, list[2].pos+3), 5, 2, 3, name},
		{"two payloads", one.flipped(name, list[1].pos+300).flipped(name, list[2].pos+300), 5, 1, 3, name},
		{"a missing segment", sealed.without(names[1]), 6, 2, 4, names[0]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			cfg := tableConfig()
			cfg.AllowDamaged = true
			for life := range 3 {
				if life == 0 {
					r.restore(tt.img)
				}
				r.open(cfg)
				r.wantMarks(core.MarkCorrupt, core.MarkAllowDamaged)
				for o := core.Offset(0); o < core.Offset(tt.records); o++ {
					got, err := r.readSome(o, 1)
					var c *core.CorruptError
					if tt.from <= o && o < tt.till {
						if !errors.As(err, &c) || c.Name() != tt.file || c.Offset != o {
							t.Errorf("offset %d: %v, want damage in %s", o, err, tt.file)
						}
					} else if len(got) == 0 || got[0] != uint64(o) {
						t.Errorf("offset %d: read %v, %v", o, got, err)
					}
				}
				r.put(tt.records, tt.records+1, 30)
				tt.records++
				r.kill()
			}
		})
	}
}
