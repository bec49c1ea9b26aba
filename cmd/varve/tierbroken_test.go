package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestManifestThatCannotBeRead: one that is damaged, or gone while the objects are there, keeps nobody from what
// is on disk. Every command names it, and what brings it back; none advises to give records up.
func TestManifestThatCannotBeRead(t *testing.T) {
	defer func(d time.Duration) { tierWait = d }(tierWait)
	tierWait = 1500 * time.Millisecond
	for _, gone := range []bool{false, true} {
		root, dir, config := moved(t, 100) // it has no file on disk any more
		with := func(command, dir string, more ...string) []string {
			return logArgs(command, dir, append(more, "--config", config)...)
		}
		mustRun(t, "", with("append", root+"/whole", "--create", "--count", "200", "--size", "100")...) // it has them all
		for _, log := range []string{"orders", "whole"} {
			path := root + "/bucket/" + log + "/manifest.json"
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			if gone {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := content(t, root)

		whole := root + "/whole"
		r := varveRun(t, "", with("read", whole)...)
		if n := strings.Count(r.out, "\n"); n != 200 || r.code != exitOK {
			t.Fatalf("%d records: exit %d, %s", n, r.code, r.err)
		}
		contains(t, r.err, "warning: the cold tier cannot be read: manifest.json refused", "run: varve cold rebuild-manifest")
		r = varveRun(t, "", with("tiers", whole)...)
		contains(t, r.out, "bucket  cannot be read", "WAL", "committed 200")
		contains(t, r.err, "rebuild-manifest")
		c := varveRun(t, "", with("check", whole)...)
		contains(t, c.out, "cannot be read: manifest.json refused", ".seg", "verdict   damaged")
		p := varveRun(t, "", with("repair", whole)...)
		contains(t, p.out, "on disk     records [0, 200)")
		contains(t, p.err, "rebuild-manifest")
		if r.code != exitDamaged || c.code != exitDamaged || p.code != exitDamaged {
			t.Errorf("exits %d, %d, %d", r.code, c.code, p.code)
		}

		r = varveRun(t, "", with("read", dir)...) // it needs the bucket
		if r.out != "" || r.code != exitDamaged {
			t.Errorf("%+v", r)
		}
		contains(t, r.err, "offset 0 is in the cold tier", "rebuild-manifest", "--from 100")
		for _, command := range []string{"append", "offload"} {
			r = varveRun(t, "1\n", with(command, whole)...)
			if r.code != exitDamaged || strings.Contains(r.err, "accept_loss") {
				t.Errorf("%s: %+v", command, r)
			}
			contains(t, r.err, "rebuild-manifest")
		}
		if content(t, root) != before {
			t.Error("something was written")
		}
		r = varveRun(t, "1\n", with("append", root+"/elsewhere/orders")...) // the disk is lost as well
		if r.code != exitDamaged {
			t.Errorf("%+v", r)
		}
		contains(t, r.err, "rebuild-manifest")

		mustRun(t, "", "cold", "rebuild-manifest", "--dir", whole, "--config", config, "--apply")
		mustRun(t, "1\n", with("append", whole)...)
		if n := strings.Count(mustRun(t, "", with("read", whole)...), "\n"); n != 201 {
			t.Errorf("%d records", n)
		}
	}
}
