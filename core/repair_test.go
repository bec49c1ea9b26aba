package core_test

import (
	"errors"
	"strings"
	"testing"

	"varve/core"
)

// repairedRig returns a closed log of three lives and its files.
func repairedRig(t *testing.T) (*rig, []savedFile) {
	r := newRig(t)
	for life := range 3 {
		r.open(smokeConfig())
		r.write(life*60, life*60+60)
		if life < 2 {
			r.kill()
		}
	}
	r.close()
	return r, r.files()
}

func repairConfig() core.Config {
	cfg := smokeConfig()
	cfg.Repair = true
	return cfg
}

func TestRepairDerivesALostSuperblock(t *testing.T) {
	r, files := repairedRig(t)
	kept := files[:0]
	for _, f := range files {
		if !strings.HasPrefix(f.name, "super.") {
			kept = append(kept, f)
		}
	}
	r.restore(kept)
	r.start(smokeConfig())
	var refused *core.RefusedError
	if !errors.As(r.log.Err(), &refused) || !strings.Contains(refused.Error(), "repair") {
		t.Fatalf("without a superblock: %v", r.log.Err())
	}
	r.kill()
	r.open(repairConfig())
	r.wantMarks(core.MarkRebuilt)
	r.wantRecords(0, 180)
	r.write(180, 190)
	r.close()
	r.open(smokeConfig())
	r.wantRecords(0, 190)
	r.wantMarks(core.MarkCleanOpen)
}

func TestRepairDeclaresADamagedSpanLost(t *testing.T) {
	r, files := repairedRig(t)
	for i := range files {
		if strings.HasSuffix(files[i].name, ".seg") {
			files[i].data[1024+115] ^= 1 // the payload of the second batch
			break
		}
	}
	cfg := smokeConfig()
	cfg.VerifyAllOnOpen = true
	r.restore(files)
	r.start(cfg)
	var damage *core.CorruptError
	if !errors.As(r.log.Err(), &damage) {
		t.Fatalf("damage: %v", r.log.Err())
	}
	first, end := int(damage.Offset), int(damage.End)
	r.kill()

	repair := repairConfig()
	repair.VerifyAllOnOpen = true
	r.open(repair)
	r.wantMarks(core.MarkRepairLost)
	r.close()

	r.open(cfg) // no flag any more
	got, err := r.readUntil(0)
	if !errors.As(err, &damage) || len(got) != first || damage.End != core.Offset(end) || !strings.Contains(err.Error(), "declared lost") {
		t.Fatalf("before the lost span: %d records, want %d; %v", len(got), first, err)
	}
	got, err = r.readUntil(core.Offset(end))
	if err != nil || len(got) != 180-end || got[0] != uint64(end) {
		t.Fatalf("behind the lost span: %d records, want %d; %v", len(got), 180-end, err)
	}
	if !r.log.Plan().Empty() {
		t.Fatal("a repaired log opens with a plan")
	}
}

func TestRepairGivesUpAMissingEnd(t *testing.T) {
	r, files := repairedRig(t)
	last := -1
	for i := range files {
		if strings.HasSuffix(files[i].name, ".seg") && (last < 0 || files[i].name > files[last].name) {
			last = i
		}
	}
	files = append(files[:last], files[last+1:]...)
	r.restore(files)
	r.start(smokeConfig())
	var lost *core.LostSuffixError
	if !errors.As(r.log.Err(), &lost) || lost.Evidence != 180 {
		t.Fatalf("a missing end: %v", r.log.Err())
	}
	end := int(lost.End)
	r.kill()
	r.open(repairConfig())
	r.wantMarks(core.MarkRepairSuffix)
	r.wantRecords(0, end)
	r.write(end, end+5)
	r.close()
	r.open(smokeConfig())
	r.wantRecords(0, end+5)
	var v core.View
	r.log.FillView(&v)
	if !v.Diverged(core.Position{Offset: 180, Epoch: 3}) {
		t.Fatal("a reader of the lost end is not told that it diverged")
	}
}

// TestRepairKeepsDamagedSlots: slots that a repair replaces go to quarantine as they were, also the
// one damaged slot beside a good one; an ordinary open leaves nothing there.
func TestRepairKeepsDamagedSlots(t *testing.T) {
	for _, damaged := range []string{"super.0", "super.1", "super.0 super.1"} {
		r, files := repairedRig(t)
		want := map[string]string{}
		for _, f := range files {
			if strings.Contains(damaged, f.name) {
				f.data[40] ^= 1
				want["quarantine/"+f.name] = string(f.data)
			}
		}
		r.restore(files)
		r.open(repairConfig())
		r.wantRecords(0, 180)
		r.close()
		for _, f := range r.files() {
			if content, ok := want[f.name]; ok && content == string(f.data) {
				delete(want, f.name)
			}
		}
		if len(want) > 0 {
			t.Fatalf("%s damaged: %d slots are not in quarantine as they were", damaged, len(want))
		}
		r.open(smokeConfig())
		r.wantRecords(0, 180)
	}
}

// TestRepairNeedsSegments: without any there is nothing to derive a superblock from.
func TestRepairNeedsSegments(t *testing.T) {
	r, files := repairedRig(t)
	for _, f := range files {
		if strings.HasPrefix(f.name, "super.") {
			f.data[40] ^= 1
			r.restore([]savedFile{f})
			break
		}
	}
	r.start(repairConfig())
	var refused *core.RefusedError
	if !errors.As(r.log.Err(), &refused) || strings.Contains(refused.Next, "repair") {
		t.Fatalf("a superblock without segments: %v", r.log.Err())
	}
}

// TestRepairCrashes: the process dies at each call of a repair, with and without the power; another
// repair ends it. The damaged slots are never lost, nor a record that the first one would have kept.
func TestRepairCrashes(t *testing.T) {
	_, files := repairedRig(t)
	var slots []string
	spoiled := false
	for i := range files {
		switch f := &files[i]; {
		case strings.HasPrefix(f.name, "super."):
			f.data[40] ^= 1
			slots = append(slots, string(f.data))
		case strings.HasSuffix(f.name, ".seg") && !spoiled:
			f.data[1024+115], spoiled = f.data[1024+115]^1, true
		}
	}
	cfg := repairConfig()
	cfg.VerifyAllOnOpen = true
	for n := int64(0); ; n++ {
		r := newRig(t)
		r.restore(files)
		r.disk.FS(0).SetCallBudget(n/3, n%3 == 2)
		r.start(cfg)
		if !r.disk.FS(0).Dead() {
			if n < 60 {
				t.Errorf("only %d deaths", n)
			}
			break
		}
		if n%3 == 0 {
			r.kill()
		} else {
			r.power()
		}
		r.open(cfg)
		r.close()
		r.open(smokeConfig())
		if got, _ := r.readUntil(2); len(got) != 178 {
			t.Errorf("%d: %d records behind the lost one", n, len(got))
		}
		kept := 0
		for _, f := range r.files() {
			if strings.HasPrefix(f.name, "quarantine/super.") && (string(f.data) == slots[0] || string(f.data) == slots[1]) {
				kept++
			}
		}
		if kept < 2 {
			t.Errorf("%d: %d of the damaged slots are in quarantine", n, kept)
		}
		if v := r.disk.Violation(); v != "" {
			t.Errorf("%d: %s", n, v)
		}
	}
}
