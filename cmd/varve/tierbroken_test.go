package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
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
		for _, create := range []string{"--create=true", "--create=false"} {
			r = varveRun(t, "1\n", with("append", root+"/elsewhere/orders", create)...) // the disk is lost as well
			if r.code != exitDamaged {
				t.Errorf("%+v", r)
			}
			contains(t, r.err, "bucket/orders: ", "rebuild-manifest")
		}
		if content(t, root) != before {
			t.Error("something was written")
		}

		mustRun(t, "", "cold", "rebuild-manifest", "--dir", whole, "--config", config, "--apply")
		mustRun(t, "1\n", with("append", whole)...)
		if n := strings.Count(mustRun(t, "", with("read", whole)...), "\n"); n != 201 {
			t.Errorf("%d records", n)
		}
	}
}

// TestHoleInTheBucket: an object is gone, and the disk does not hold its records. What meets the hole says how to
// go on behind it, and which command looks at the bucket; none sends its reader to one that sees nothing.
func TestHoleInTheBucket(t *testing.T) {
	root, dir, config := moved(t, 500)
	with := func(command string, more ...string) []string {
		return logArgs(command, dir, append(more, "--config", config)...)
	}
	objects, err := filepath.Glob(root + "/bucket/orders/segments/*")
	if err != nil || len(objects) < 4 {
		t.Fatal(objects, err)
	}
	var first, end int
	if _, err := fmt.Sscanf(filepath.Base(objects[1]), "%d-%d-", &first, &end); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(objects[1]); err != nil {
		t.Fatal(err)
	}
	r := varveRun(t, "", with("read")...)
	if n := strings.Count(r.out, "\n"); n != first || r.code != exitDamaged {
		t.Errorf("%d records of %d, exit %d", n, first, r.code)
	}
	on := fmt.Sprintf("--from %d", end)
	contains(t, r.err, "run: varve cold scrub", "read on behind it: "+on)
	if n := strings.Count(mustRun(t, "", with("read", "--from", fmt.Sprint(end))...), "\n"); n != 500-end {
		t.Errorf("%d records behind it", n)
	}
	contains(t, mustRun(t, "", with("check")...), "varve cold scrub looks at the objects")
	r = varveRun(t, "", with("check", "--deep")...)
	if contains(t, r.err, "run: varve cold scrub"); r.code != exitDamaged || strings.Contains(r.err, "repair") {
		t.Errorf("%+v", r)
	}
	contains(t, mustRun(t, "", with("repair")...), "nothing to repair", "varve cold scrub")
	r = varveRun(t, "", "cold", "scrub", "--dir", dir, "--config", config)
	if contains(t, r.err, "log read "+on+" goes on behind"); r.code != exitDamaged {
		t.Errorf("%+v", r)
	}
}

// TestServerThatHangs: an S3 server takes connections and answers nothing. What is on disk is read without it, and
// two lines say that it is waited for, and that it did not answer.
func TestServerThatHangs(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // of a test
	root := t.TempDir()
	mustRun(t, "1\n2\n", appendArgs(root+"/old")...)
	config := configured(t, "cold: {url: \"s3://bucket/logs\", endpoint: \"http://"+listener.Addr().String()+"\"}\n")
	began := time.Now()
	r := varveRun(t, "", logArgs("read", root+"/old", "--config", config)...)
	if r.out != "1\n2\n" || r.code != exitOK || strings.Count(r.err, "\n") != 2 {
		t.Errorf("%+v", r)
	}
	contains(t, r.err, "warning: the cold tier has not answered yet", "warning: the cold tier does not answer: load manifest")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestBucketThatNeverWas: what a log is given for the first time, and is not there, is a mistake or to be made: it is
// not waited for. A copy of a bucket without its own directory is none, and a scrub of it claims nothing.
func TestBucketThatNeverWas(t *testing.T) {
	root := t.TempDir()
	dir, config := root+"/orders", tiered(t, root)
	mustRun(t, "1\n", appendArgs(dir)...)
	began := time.Now()
	fails(t, root, exitFailed, logArgs("append", dir, "--config", config), "the bucket is not there", "to begin a new bucket: --create")
	if took := time.Since(began); took > tierWait/2 {
		t.Errorf("it took %v", took)
	}
	mustRun(t, "1\n", logArgs("append", dir, "--config", config, "--create")...)
	if err := os.RemoveAll(root + "/bucket/.varve"); err != nil {
		t.Fatal(err)
	}
	r := fails(t, root, exitFailed, []string{"cold", "scrub", "--dir", dir, "--config", config}, "bring .varve along if this is a copy")
	if strings.Contains(r.out, "verified") {
		t.Error(r.out)
	}
	fails(t, root, exitUsage, []string{"log", "check", "--dir", dir, "--cold-url", "file://" + dir + "/bucket"}, "give the bucket one of its own")
	fails(t, root, exitFailed, []string{"log", "check", "--dir", config}, "name the directory of a log")
}
