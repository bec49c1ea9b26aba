package core_test

import (
	"testing"
	"time"

	"varve/core"
	"varve/core/segment"
)

// TestPlanOfManyFiles: recovery's decisions take a time that grows with the number of segments, not
// with its square. 50,000 sealed segments are planned in a blink; with a look at every file for every
// offset it would be minutes.
func TestPlanOfManyFiles(t *testing.T) {
	const n, records = 50_000, 10
	cfg := tableConfig()
	cfg.ReadOnly = true
	now := core.Now{Wall: 1}
	l, err := core.Open(cfg, now)
	if err != nil {
		t.Fatal(err)
	}
	super := segment.Superblock{
		LogID: cfg.LogID, Epoch: 1, Nonce: 1, SectorBytes: uint32(cfg.SectorBytes), Complete: true,
		Sequence: 1, Frontier: n * records, Committed: n * records,
		Lineage: []segment.Lineage{{Epoch: 1, First: 0}},
	}
	began := time.Now()
	for l.Phase() == core.Opening {
		e := l.Next(now, core.Hot)
		switch e := e.(type) {
		case *core.List:
			e.Super = [2]bool{true, true}
			for i := range n {
				e.Files = append(e.Files, core.FileEntry{
					Base: core.Offset(i * records), ID: segment.MakeID(1, uint32(i+1)), Bytes: 4096,
				})
			}
		case *core.LoadSuper:
			for i := range e.Slots {
				if e.Slots[i], err = segment.AppendSuper(e.Slots[i][:0], &super); err != nil {
					t.Fatal(err)
				}
			}
		case *core.Scan:
			f := &e.File
			e.Info = segment.FileInfo{
				Bytes: f.Bytes, Verdict: segment.HeaderGood, Epoch: 1, Sealed: true,
				Header: segment.Header{
					Kind: segment.Created, Epoch: 1, ID: f.ID, Base: f.Base, LogID: cfg.LogID,
					SectorBytes: uint32(cfg.SectorBytes),
				},
				Footer: segment.Footer{Base: f.Base, End: f.Base + records, Epoch: 1, DataEnd: 2048},
			}
		default:
			t.Fatalf("%T while planning", e)
		}
		l.Complete(now, e, nil)
	}
	if l.Phase() != core.Planned {
		t.Fatalf("%v: %v", l.Phase(), l.Err())
	}
	p := l.Plan()
	if p.End != n*records || len(p.Extents) != n || !p.Empty() {
		t.Errorf("end %d, %d extents, empty %v", p.End, len(p.Extents), p.Empty())
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("planning %d segments took %v", n, took)
	}
}
