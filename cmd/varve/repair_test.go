package main

import (
	"os"
	"strings"
	"testing"
)

func TestRepairRebuildsTheSuperblock(t *testing.T) {
	dir := t.TempDir() + "/log"
	mustRun(t, "", appendArgs(dir, "--count", "30", "--size", "60")...)
	mustRun(t, "", appendArgs(dir, "--count", "30", "--size", "60")...)
	flip(t, dir+"/super.0", 20)
	flip(t, dir+"/super.1", 20)
	if r := varveRun(t, "", "log", "check", "--dir", dir); r.code != exitDamaged || !strings.Contains(r.err, "varve log repair") {
		t.Fatalf("check: %+v", r)
	}
	if r := varveRun(t, "x\n", appendArgs(dir)...); r.code != exitDamaged {
		t.Fatalf("append: %+v", r)
	}
	before := snapshot(t, dir)
	if out := mustRun(t, "", "log", "repair", "--dir", dir); !strings.Contains(out, "rebuild") || snapshot(t, dir) != before {
		t.Fatalf("repair without --apply: %s", out)
	}
	if out := mustRun(t, "", "log", "repair", "--dir", dir, "--apply"); !strings.Contains(out, "records [0, 60) can be read") {
		t.Fatalf("repair --apply: %s", out)
	}
	for _, name := range []string{"super.0.0", "super.1.0"} {
		if _, err := os.Stat(dir + "/quarantine/" + name); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "", "log", "check", "--dir", dir, "--deep", "--generated")
	mustRun(t, "", appendArgs(dir, "--count", "5", "--size", "60")...)
	if out := mustRun(t, "", "log", "repair", "--dir", dir, "--apply"); !strings.Contains(out, "records [0, 65)") {
		t.Fatalf("repair of a good log: %s", out)
	}
}
