package varve_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"varve"
	"varve/core/segment"
)

// repairWorld makes a log of three lives, closed cleanly or left as kill -9 leaves it.
func repairWorld(t *testing.T, killed bool) (files map[string][]byte, records int64) {
	t.Helper()
	dir := t.TempDir()
	o := varve.Options{MinFreeBytes: -1, SegmentBytes: 4096, NoPreallocate: true}
	for life := range 3 {
		l, err := varve.Open(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for range 12 {
			n := 1 + int(records)%3
			recs := make([]varve.Record, n)
			for i := range recs {
				recs[i].Value = repairValue(records + int64(i))
			}
			if _, err := l.Append(t.Context(), recs...); err != nil {
				t.Fatal(err)
			}
			records += int64(n)
		}
		if life == 2 && killed {
			files = filesOf(t, dir)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if files == nil {
		files = filesOf(t, dir)
	}
	return files, records
}

func repairValue(o int64) []byte { return fmt.Appendf(nil, "%0*d", 20+int(o%7)*30, o) }

func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, _ := filepath.Glob(dir + "/*.*")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = b
	}
	return files
}

// spoil writes the files with some of them damaged.
func spoil(t *testing.T, r *rand.Rand, dir string, files map[string][]byte) (what string) {
	t.Helper()
	names := slices.Sorted(maps.Keys(files))
	both := r.IntN(3) == 0 // superblock slots
	for i := range 1 + r.IntN(4) {
		victim := names[r.IntN(len(names))]
		if both && i < 2 && i < len(names) {
			victim = names[len(names)-1-i]
		}
		b := append([]byte(nil), files[victim]...)
		if len(b) == 0 { // cut to nothing before
			continue
		}
		at := r.IntN(len(b))
		if strings.HasPrefix(victim, "super.") {
			at = r.IntN(min(len(b), 160)) // the rest is padding
		}
		switch how := r.IntN(5); how {
		case 0:
			b[at] ^= 1 << r.IntN(8)
			what += fmt.Sprintf("flip %s at %d; ", victim, at)
		case 1:
			b = b[:at]
			what += fmt.Sprintf("cut %s at %d; ", victim, at)
		case 2:
			n := min(len(b)-at, 1+r.IntN(3000))
			clear(b[at : at+n])
			what += fmt.Sprintf("zero %s at %d, %d bytes; ", victim, at, n)
		case 3:
			b = nil
			what += fmt.Sprintf("remove %s; ", victim)
		case 4:
			for i := range b[at:min(len(b), at+600)] {
				b[at+i] = byte(r.Uint32())
			}
			what += fmt.Sprintf("noise in %s at %d; ", victim, at)
		}
		files[victim] = b
		if b == nil {
			delete(files, victim)
			names = slices.Sorted(maps.Keys(files))
		}
		if len(names) == 0 {
			break
		}
	}
	for name, b := range files {
		if err := os.WriteFile(dir+"/"+name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return what
}

// TestRepairOfRandomDamage: whatever was done to the files, a repair is either refused and changes
// nothing, or afterwards the log opens with everything verified, and holds what the plan said: each
// record right, or an error that names its span.
func TestRepairOfRandomDamage(t *testing.T) {
	done, refused, seeds := 0, 0, uint64(100)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		files, records := repairWorlds(t, seed%2 == 0)
		dir := t.TempDir()
		what := spoil(t, r, dir, files)
		o := varve.Options{MinFreeBytes: -1, RepairChecksumTail: seed%3 == 0}
		before := filesOf(t, dir)
		plan, err := varve.Repair(t.Context(), dir, o)
		if err != nil {
			refused++
			if !same(before, filesOf(t, dir)) {
				t.Errorf("seed %d: %s: refused, but changed: %v", seed, what, err)
			}
			continue
		}
		done++
		for _, x := range plan.Plan.Rescues { // whose records are in a file of their own now
			f := &plan.Plan.Files[x.File].Entry
			delete(before, segment.Name(f.Base, f.ID))
		}
		wantKept(t, seed, what, dir, before)
		verifyRepaired(t, seed, what, dir, plan, records)
	}
	t.Logf("%d repaired, %d refused", done, refused)
	if done < int(seeds)/2 {
		t.Errorf("only %d of %d were repaired", done, seeds)
	}
}

var repairCache [2]struct {
	files   map[string][]byte
	records int64
}

// repairWorlds returns a copy of one of two worlds, which are made once.
func repairWorlds(t *testing.T, killed bool) (files map[string][]byte, records int64) {
	t.Helper()
	c := &repairCache[0]
	if killed {
		c = &repairCache[1]
	}
	if c.files == nil {
		c.files, c.records = repairWorld(t, killed)
	}
	files = map[string][]byte{}
	for name, b := range c.files {
		files[name] = append([]byte(nil), b...)
	}
	return files, c.records
}

func same(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for name := range a {
		if string(a[name]) != string(b[name]) {
			return false
		}
	}
	return true
}

// wantKept fails if the content of a file is gone: all of them stay, or are in quarantine, but for
// superblock slots that verified, and files in which nothing but a header may have been.
func wantKept(t *testing.T, seed uint64, what, dir string, before map[string][]byte) {
	t.Helper()
	for name, b := range before {
		var super segment.Superblock
		if strings.HasSuffix(name, ".seg") {
			b = b[min(len(b), 512):]
		}
		if segment.ReadSuper(b, &super) == nil || len(bytes.Trim(b, "\x00")) == 0 {
			continue
		}
		b = before[name]
		kept := false
		for _, at := range []string{name, "quarantine/" + name} {
			now, err := os.ReadFile(filepath.Join(dir, at))
			kept = kept || err == nil && bytes.Equal(now, b)
		}
		if !kept {
			t.Errorf("seed %d: %s: %s is gone", seed, what, name)
		}
	}
}

func verifyRepaired(t *testing.T, seed uint64, what, dir string, plan *varve.RepairPlan, records int64) {
	t.Helper()
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1, VerifyAllOnOpen: true})
	if err != nil {
		t.Errorf("seed %d: %s: after a repair: %v", seed, what, err)
		return
	}
	defer l.Close(context.Background())
	if l.Committed() > records {
		t.Errorf("seed %d: %s: the log ends at %d of %d", seed, what, l.Committed(), records)
	}
	got := int64(0)
	for at := l.Start(); at < l.Committed(); {
		for rec, err := range l.Records(t.Context(), varve.Position{Offset: at}) {
			var damage *varve.CorruptError
			switch {
			case errors.As(err, &damage) && damage.Offset == at && damage.End > at:
				at = damage.End
			case err != nil:
				t.Errorf("seed %d: %s: at %d: %v", seed, what, at, err)
				return
			case rec.Offset != at || string(rec.Value) != string(repairValue(at)):
				t.Errorf("seed %d: %s: record %d is another one, %d", seed, what, at, rec.Offset)
				return
			default:
				at++
				got++
				continue
			}
			break
		}
	}
	if got != plan.Kept() {
		t.Errorf("seed %d: %s: %d records can be read, %d were promised", seed, what, got, plan.Kept())
	}
	if _, err := l.Append(t.Context(), varve.Record{Value: repairValue(l.Committed())}); err != nil {
		t.Errorf("seed %d: %s: append after a repair: %v", seed, what, err)
	}
}
