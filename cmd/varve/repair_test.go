package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// threeLives makes a log of three segments with 30 generated records each.
func threeLives(t *testing.T) (dir string) { return lives(t, 3, "30") }

// lives makes a log of so many lives, each a segment with so many generated records.
func lives(t *testing.T, n int, records string) (dir string) {
	t.Helper()
	dir = t.TempDir() + "/log"
	for range n {
		mustRun(t, "", appendArgs(dir, "--count", records, "--size", "60")...)
	}
	if got := len(segments(t, dir)); got != n {
		t.Fatalf("%d segments", got)
	}
	return dir
}

// repairs runs check, the plan, and the repair itself, and returns what the plan says. The plan must
// write nothing, and afterwards the log must open without a flag.
func repairs(t *testing.T, dir string, more ...string) (plan string) {
	t.Helper()
	if r := varveRun(t, "", "log", "check", "--dir", dir, "--deep"); r.code != exitDamaged || !strings.Contains(r.err, "varve log repair") {
		t.Fatalf("check: %+v", r)
	}
	if r := varveRun(t, "x\n", appendArgs(dir, "--verify-all-on-open")...); r.code != exitDamaged {
		t.Fatalf("append: %+v", r)
	}
	before := snapshot(t, dir)
	args := append([]string{"log", "repair", "--dir", dir}, more...)
	plan = mustRun(t, "", args...)
	if !strings.Contains(plan, "nothing was written; do it with --apply") || snapshot(t, dir) != before {
		t.Fatalf("repair without --apply: %s", plan)
	}
	out := mustRun(t, "", append(args, "--apply")...)
	if !strings.Contains(out, "repaired ") {
		t.Fatalf("repair --apply: %s", out)
	}
	mustRun(t, "", "log", "check", "--dir", dir, "--deep", "--generated")
	mustRun(t, "", appendArgs(dir, "--count", "5", "--size", "60", "--verify-all-on-open")...)
	mustRun(t, "", "log", "check", "--dir", dir, "--deep", "--generated")
	return plan
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Fatalf("no %q in: %s", w, text)
		}
	}
}

// records reads a log and returns how many records came before the exit code.
func records(t *testing.T, dir string, more ...string) (n, code int) {
	t.Helper()
	r := varveRun(t, "", append([]string{"log", "read", "--dir", dir}, more...)...)
	return strings.Count(r.out, "\n"), r.code
}

func TestRepairRebuildsTheSuperblock(t *testing.T) {
	dir := threeLives(t)
	flip(t, dir+"/super.0", 20)
	flip(t, dir+"/super.1", 20)
	damaged, _ := os.ReadFile(dir + "/super.1")
	plan := repairs(t, dir)
	contains(t, plan, "damage      super.0: ", "damage      super.1: ", "at byte", "expected", "rebuild", "keep        90 ")
	if strings.Contains(plan, "give up") {
		t.Fatal(plan)
	}
	if kept, err := os.ReadFile(dir + "/quarantine/super.1"); err != nil || string(kept) != string(damaged) {
		t.Fatalf("the damaged slot is not kept: %v", err)
	}
	if n, code := records(t, dir); n != 95 || code != exitOK {
		t.Fatalf("%d records, exit %d", n, code)
	}
}

func TestRepairOfMissingSlots(t *testing.T) {
	dir := threeLives(t)
	for _, name := range []string{"super.0", "super.1"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	contains(t, repairs(t, dir), "rebuild", "keep        90 ")
	if n, code := records(t, dir); n != 95 || code != exitOK {
		t.Fatalf("%d records, exit %d", n, code)
	}
}

func TestRepairGivesUpADamagedBatch(t *testing.T) {
	dir := threeLives(t)
	name := segments(t, dir)[1]
	flip(t, name, 6*512+150) // the payload of offset 35
	plan := repairs(t, dir)
	contains(t, plan, filepath.Base(name)+" at byte 3072, offsets [35, 36)", "give up     offsets [35, 36) of epoch 2", "keep        89 ")
	contains(t, mustRun(t, "", "log", "check", "--dir", dir), "lost      [35, 36) of epoch 2", "verdict   clean")
	if n, code := records(t, dir); n != 35 || code != exitDamaged {
		t.Fatalf("up to the lost span: %d records, exit %d", n, code)
	}
	if n, code := records(t, dir, "--from", "36"); n != 59 || code != exitOK {
		t.Fatalf("behind the lost span: %d records, exit %d", n, code)
	}
}

// TestRepairMovesASegmentAside: a file of which nothing is left to serve goes to quarantine whole.
func TestRepairMovesASegmentAside(t *testing.T) {
	dir := threeLives(t)
	name := segments(t, dir)[1]
	noise := []byte(strings.Repeat("noise", 4000))
	if err := os.WriteFile(name, noise, 0o644); err != nil {
		t.Fatal(err)
	}
	contains(t, repairs(t, dir), "give up     offsets [30, 60) of epoch 2", "keep        60 ")
	if kept, err := os.ReadFile(dir + "/quarantine/" + filepath.Base(name)); err != nil || string(kept) != string(noise) {
		t.Fatalf("the damaged file is not kept: %v", err)
	}
	if n, code := records(t, dir, "--from", "60"); n != 35 || code != exitOK {
		t.Fatalf("behind the lost span: %d records, exit %d", n, code)
	}
}

func TestRepairOfAMissingSegment(t *testing.T) {
	dir := threeLives(t)
	if err := os.Remove(segments(t, dir)[1]); err != nil {
		t.Fatal(err)
	}
	contains(t, repairs(t, dir), "offsets [30, 60)", "give up     offsets [30, 60) of epoch 2", "keep        60 ")
	if n, code := records(t, dir, "--from", "60"); n != 35 || code != exitOK {
		t.Fatalf("behind the lost span: %d records, exit %d", n, code)
	}
}

func TestRepairAcceptsAMissingEnd(t *testing.T) {
	dir := threeLives(t)
	if err := os.Remove(segments(t, dir)[2]); err != nil {
		t.Fatal(err)
	}
	contains(t, repairs(t, dir), "give up     offsets [60, 90): the log will end at 60", "keep        60 ")
	if n, code := records(t, dir); n != 65 || code != exitOK {
		t.Fatalf("%d records, exit %d", n, code)
	}
}

func TestRepairOfAChecksumTail(t *testing.T) {
	dir := damagedTail(t)
	r := varveRun(t, "", "log", "repair", "--dir", dir, "--apply")
	if r.code != exitDamaged || !strings.Contains(r.err, "--checksum-tail") || strings.Count(r.err, "\n") != 1 {
		t.Fatalf("without --checksum-tail: %+v", r)
	}
	contains(t, r.out, "damage ", "offset 4 and behind it")
	contains(t, repairs(t, dir, "--checksum-tail"), "give up     offset 4 and behind it", "keep        4 ")
	if n, code := records(t, dir); n != 9 || code != exitOK {
		t.Fatalf("%d records, exit %d", n, code)
	}
}

// damagedTail makes a log as kill -9 leaves it, and damages the payload of its last batch, offset 4.
func damagedTail(t *testing.T) (dir string) {
	t.Helper()
	dir = killed(t, 5)
	flip(t, segments(t, dir)[0], 5*512+200)
	return dir
}

func TestRepairRefusesAForeignSegment(t *testing.T) {
	dir, other := threeLives(t), threeLives(t)
	name := filepath.Base(segments(t, dir)[1])
	content, err := os.ReadFile(other + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, super := range []bool{true, false} {
		before := snapshot(t, dir)
		r := varveRun(t, "", "log", "repair", "--dir", dir, "--apply")
		if r.code != exitFailed || !strings.Contains(r.err, name) || !strings.Contains(r.err, "another log") || strings.Count(r.err, "\n") != 1 {
			t.Fatalf("%+v", r)
		}
		if snapshot(t, dir) != before {
			t.Fatal("a refused repair wrote")
		}
		if super {
			_, _ = os.Remove(dir+"/super.0"), os.Remove(dir+"/super.1")
		}
	}
}

func TestRepairOfAGoodLog(t *testing.T) {
	for _, dir := range []string{threeLives(t), killed(t, 5)} {
		before := snapshot(t, dir)
		for _, args := range [][]string{{}, {"--apply"}, {"--apply", "--checksum-tail"}} {
			out := mustRun(t, "", append([]string{"log", "repair", "--dir", dir}, args...)...)
			if !strings.Contains(out, "nothing to repair") {
				t.Fatal(out)
			}
		}
		if snapshot(t, dir) != before {
			t.Fatal("a repair of a good log wrote")
		}
	}
}

// TestSlotThatIsNotWhole: a log opens with one copy of its superblock, and says that the other one may have known of
// more; that is said once, because the open writes it anew.
func TestSlotThatIsNotWhole(t *testing.T) {
	for _, gone := range []bool{false, true} {
		dir := t.TempDir() + "/log"
		mustRun(t, "1\n2\n", appendArgs(dir)...)
		if err := os.WriteFile(dir+"/super.1", []byte("junk"), 0o644); err != nil {
			t.Fatal(err)
		}
		want := []string{"warning: one of the two copies of the superblock is not whole", "slot: 1", "may be missing at the end"}
		if gone {
			want = append(want, "it is missing")
			if err := os.Remove(dir + "/super.1"); err != nil {
				t.Fatal(err)
			}
		}
		contains(t, varveRun(t, "3\n", appendArgs(dir)...).err, want...)
		if r := varveRun(t, "4\n", appendArgs(dir)...); strings.Contains(r.err, "warning") {
			t.Error(r.err)
		}
	}
}
