package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"varve"
	"varve/core/segment"
	"varve/tiers/tiertest"
)

// The tests of the bugs_*_test.go files carry the ids of failures that users of other logs reported;
// the table "Failures of other logs" in TESTING.md says which class each belongs to.

// tenSegments makes a log of ten segments with 10 generated records each.
func tenSegments(t *testing.T) (dir string) { return lives(t, 10, "10") }

// TestMC2DamageInOneOfTenSegments: the third of ten segments is damaged, in a payload or all of it. By
// default nothing of it is served and nothing is deleted; a repair keeps the damaged bytes, gives up
// the named span alone, and what follows is there.
func TestMC2DamageInOneOfTenSegments(t *testing.T) {
	for _, whole := range []bool{false, true} {
		t.Run(fmt.Sprintf("whole %v", whole), func(t *testing.T) {
			dir := tenSegments(t)
			name := segments(t, dir)[2]
			flip(t, name, 512+112+20)
			if whole {
				if err := os.WriteFile(name, bytes.Repeat([]byte("noise"), 1000), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			damaged, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			fails(t, dir, exitDamaged, logArgs("append", dir, "--verify-all-on-open"), filepath.Base(name), "offset 20", "run: varve log check")
			r := fails(t, dir, exitDamaged, logArgs("read", dir), filepath.Base(name), "offset 20")
			if n := strings.Count(r.out, "\n"); n != 20 {
				t.Errorf("%d records before the damage", n)
			}
			fails(t, dir, exitDamaged, logArgs("check", dir, "--deep"), filepath.Base(name), "varve log repair")
			if whole { // by default too: no footer vouches for it
				fails(t, dir, exitDamaged, logArgs("append", dir), filepath.Base(name), "offset 20")
			}
			plan := mustRun(t, "", logArgs("repair", dir)...)
			lost := 1
			if whole {
				lost = 10
			}
			contains(t, plan, fmt.Sprintf("offsets [20, %d)", 20+lost))
			mustRun(t, "", logArgs("repair", dir, "--apply")...)
			kept := false
			for _, at := range []string{name, dir + "/quarantine/" + filepath.Base(name)} {
				b, err := os.ReadFile(at)
				kept = kept || err == nil && bytes.Equal(b, damaged)
			}
			if !kept {
				t.Error("the damaged bytes are gone")
			}
			if n, code := records(t, dir, "--from", fmt.Sprint(20+lost)); n != 100-20-lost || code != exitOK {
				t.Errorf("behind the lost span: %d records, exit %d", n, code)
			}
			mustRun(t, "", appendArgs(dir, "--count", "5", "--size", "60", "--verify-all-on-open")...)
			mustRun(t, "", logArgs("check", dir, "--deep", "--generated")...)
		})
	}
}

// TestCL1DumpTouchesNothing: dump, check and read beside a writer, and on a read-only mount. No byte, no
// time and no name changes, not even of the lock.
func TestCL1DumpTouchesNothing(t *testing.T) {
	commands := [][]string{{"dump"}, {"check"}, {"check", "--deep"}, {"read"}}
	run := func(t *testing.T, dir string) {
		t.Helper()
		before := snapshot(t, dir)
		for _, c := range commands {
			mustRun(t, "", append([]string{"log", c[0], "--dir", dir}, c[1:]...)...)
		}
		name := filepath.Base(segments(t, dir)[0])
		mustRun(t, "", logArgs("dump", dir, "--segment", name)...)
		if after := snapshot(t, dir); after != before {
			t.Errorf("something was changed:\n%s\n%s", before, after)
		}
	}
	t.Run("beside a writer", func(t *testing.T) {
		dir := threeLives(t)
		l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1, NoPreallocate: true})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		if _, err := l.Append(t.Context(), varve.Record{Value: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		for l.Stats().SuperSaves < 3 { // until the writer has nothing left to save
			runtime.Gosched()
		}
		run(t, dir)
	})
	t.Run("read-only", func(t *testing.T) {
		root := tiertest.Tmpfs(t, 0, "size=8m")
		dir := root + "/log"
		mustRun(t, "", appendArgs(dir, "--count", "30", "--size", "60")...)
		if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		run(t, dir)
	})
}

// TestCL3DumpOfAnyFile: files cut, zeroed, with lengths of 4 GiB, with noise, under the names of segments and
// superblocks. dump neither panics nor hangs, holds little, says where each file breaks and which
// checksum was expected and found, and goes on with the other files.
func TestCL3DumpOfAnyFile(t *testing.T) {
	good, err := os.ReadFile(segments(t, threeLives(t))[0])
	if err != nil {
		t.Fatal(err)
	}
	const head = 512
	length := head + segment.PlacementBytes
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	spoilt := map[string][]byte{
		"empty":   nil,
		"header":  good[:100],
		"cut":     good[:head+200],
		"zeros":   make([]byte, 64<<10),
		"noise":   bytes.Repeat([]byte("VRVB\xff\xff\xff\xff"), 8<<10),
		"4 GiB":   edit(func(b []byte) []byte { copy(b[length:], "\xff\xff\xff\xff"); return b }),
		"payload": edit(func(b []byte) []byte { b[head+segment.BatchHeaderBytes+3] ^= 1; return b }),
	}
	for what, content := range spoilt {
		t.Run(what, func(t *testing.T) {
			dir := threeLives(t)
			names := segments(t, dir)
			for _, name := range []string{names[1], dir + "/super.0"} {
				if err := os.WriteFile(name, content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out := mustRun(t, "", logArgs("dump", dir)...)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("%d bytes are allocated", n)
			}
			if strings.Count(out, "footer verifies") < 2 {
				t.Errorf("the good files are not all there: %s", out)
			}
			contains(t, out, "super.0  does not verify: segment: superblock at byte")
			varveRun(t, "", logArgs("dump", dir, "--segment", filepath.Base(names[1]))...)
		})
	}
	dir := threeLives(t)
	name := segments(t, dir)[1]
	flip(t, name, head+segment.BatchHeaderBytes+3)
	out := mustRun(t, "", logArgs("dump", dir)...)
	contains(t, out, "a payload with a wrong checksum (expected ", ", found ", fmt.Sprintf("at byte %d", head))
	if strings.Count(out, "footer verifies") != 3 {
		t.Error("it does not go on behind the damage")
	}
}

// TestCL4AnySegmentRemovedByHand: each of three segments is removed. The plan says which offsets are lost, to
// the record; the repair destroys nothing, and the log opens.
func TestCL4AnySegmentRemovedByHand(t *testing.T) {
	for k, want := range []string{"offsets [0, 30)", "offsets [30, 60)", "offsets [60, 90)"} {
		dir := threeLives(t)
		names := segments(t, dir)
		if err := os.Remove(names[k]); err != nil {
			t.Fatal(err)
		}
		plan := repairs(t, dir)
		contains(t, plan, "give up", want)
		n, first := 95, 0
		switch k {
		case 0, 1:
			first = 30 * (k + 1)
		case 2:
			n = 65
		}
		if got, code := records(t, dir, "--from", fmt.Sprint(first)); got != n-first || code != exitOK {
			t.Errorf("segment %d: %d records from %d on, exit %d", k, got, first, code)
		}
		for i, name := range names {
			if _, err := os.Stat(name); i != k && err != nil {
				t.Errorf("segment %d: %s is gone", k, name)
			}
		}
	}
}

// TestCF1EverySettingWithEveryValue: each setting is left out, or set to nothing, 0, -1, 0s, 10, 10GB, 1e9
// and true, as a flag and from the environment. Left out is the default; 0 and -1 mean what the table
// in the README says or are refused; a value that is none is refused with its key and the value, and
// the log is as it was.
func TestCF1EverySettingWithEveryValue(t *testing.T) {
	dir := threeLives(t)
	meaning := map[string]string{ // accepted values; all others are refused
		"VARVE_FSYNC_MODE":               "",
		"VARVE_FSYNC_INTERVAL_MS":        "10",
		"VARVE_SEGMENT_BYTES":            "",
		"VARVE_SEGMENT_AGE":              "-1",
		"VARVE_INDEX_SPACING_BYTES":      "10",
		"VARVE_MAX_BATCH_BYTES":          "10",
		"VARVE_PENDING_BYTES":            "",
		"VARVE_MIN_FREE_BYTES":           "0 10",
		"VARVE_PREALLOCATE":              "true 0",
		"VARVE_RETENTION_BYTES":          "-1 10",
		"VARVE_RETENTION_AGE":            "-1",
		"VARVE_LOCAL_RETENTION_BYTES":    "-1 10",
		"VARVE_LOCAL_RETENTION_AGE":      "-1",
		"VARVE_RETENTION_CHECK_INTERVAL": "",
		"VARVE_VERIFY_ALL_ON_OPEN":       "true 0",
		"VARVE_REPAIR_CHECKSUM_TAIL":     "true 0",
		"VARVE_ALLOW_DAMAGED":            "true 0",
		"VARVE_ACCEPT_LOSS":              "true 0",
		"VARVE_CREATE":                   "true 0",

		"VARVE_WARM_ENDPOINTS":                  "",
		"VARVE_WARM_WAIT_REPLICAS":              "0 10",
		"VARVE_WARM_WAIT_TIMEOUT_MS":            "10",
		"VARVE_WARM_ON_WAIT_TIMEOUT":            "",
		"VARVE_WARM_MAX_CACHED_CLOSED_SEGMENTS": "0 10",
		"VARVE_WARM_MAX_BYTES":                  "-1 10",
		"VARVE_WARM_NAME":                       "",
		"VARVE_WARM_SERVERS":                    "",
		"VARVE_WARM_SENTINEL_MASTER":            "",
		"VARVE_WARM_USERNAME":                   "",
		"VARVE_WARM_PASSWORD_FILE":              "",
		"VARVE_WARM_SENTINEL_USERNAME":          "",
		"VARVE_WARM_SENTINEL_PASSWORD_FILE":     "",
		"VARVE_WARM_TLS":                        "0",
		"VARVE_WARM_TLS_CA_FILE":                "",
		"VARVE_WARM_TLS_CERT_FILE":              "",
		"VARVE_WARM_TLS_KEY_FILE":               "",
		"VARVE_COLD_URL":                        "",
		"VARVE_COLD_NAME":                       "",
		"VARVE_COLD_ENDPOINT":                   "",
		"VARVE_COLD_REGION":                     "",
		"VARVE_COLD_PATH_STYLE":                 "auto",
		"VARVE_COLD_SSE":                        "none",
		"VARVE_COLD_SSE_KMS_KEY":                "",
		"VARVE_COLD_PART_BYTES":                 "",
		"VARVE_COLD_MAX_UPLOAD_AGE":             "-1",

		"VARVE_DIR":             "0 -1 0s 10 10GB 1e9 true", // any name is one of a directory
		"VARVE_LISTEN":          "",
		"VARVE_ADVERTISE":       "",
		"VARVE_ADMIN":           "",
		"VARVE_ALLOW_PLAINTEXT": "true 0",
		"VARVE_PPROF":           "true 0",
		"VARVE_DRAIN_TIMEOUT":   "",
		"VARVE_AUTO_CREATE":     "true 0",
		"VARVE_PARTITIONS":      "10",
		"VARVE_PARTITIONS_MAX":  "10",
	}
	for i := range table {
		k := &table[i]
		accepted, known := meaning[k.env]
		if !known {
			t.Errorf("%s is new: say here which values it takes", k.env)
		}
		for _, value := range []string{"", "0", "-1", "0s", "10", "10GB", "1e9", "true"} {
			t.Run(k.env+"="+value, func(t *testing.T) {
				setting(t, dir, k, value, strings.Contains(" "+accepted+" ", " "+value+" "))
			})
		}
	}
}

// setting runs append with one setting, from the environment and as a flag; what only a node has is explained.
func setting(t *testing.T, dir string, k *key, value string, accepted bool) {
	plain := strings.NewReplacer("-", "_", ".", "_")
	key := plain.Replace(k.name)
	for _, args := range [][]string{nil, {"--" + k.flag + "=" + value}} {
		if args == nil {
			t.Setenv(k.env, value)
		}
		before := content(t, dir)
		command := []string{"log", "append", "--dir", dir}
		if _, ofNode := reflect.TypeFor[serveSettings]().FieldByName(reflect.TypeFor[nodeSettings]().FieldByIndex(k.field).Name); ofNode {
			command = []string{"config", "explain"}
		}
		r := varveRun(t, "", append(command, args...)...)
		t.Setenv(k.env, "")
		if err := os.Unsetenv(k.env); err != nil {
			t.Fatal(err)
		}
		switch refused := r.code == exitUsage; {
		case value == "": // as if it were not there, or refused
		case accepted == refused:
			t.Errorf("%v: refused %v: %s", args, refused, r.err)
		case refused:
			text := strings.ToLower(plain.Replace(r.err))
			if !strings.Contains(text, strings.TrimSuffix(key, "_mode")) || !strings.Contains(text, strings.ToLower(plain.Replace(value))) {
				t.Errorf("%v: neither key nor value in %q", args, r.err)
			}
			if content(t, dir) != before {
				t.Errorf("%v: refused, and something was changed", args)
			}
		}
	}
}

// TestSE1NamesThatLeadElsewhere: names of files that lead out of the directory, or are none. They are
// refused before anything is looked at.
func TestSE1NamesThatLeadElsewhere(t *testing.T) {
	root := t.TempDir()
	dir := root + "/log"
	mustRun(t, "x\n", appendArgs(dir)...)
	good := filepath.Base(segments(t, dir)[0])
	for _, name := range []string{
		"..", "a/../b", "/abs", "a\\b", "C:x", ".", "\x00", strings.Repeat("a", 300), "CON", good + ".", good + " ", "%2e%2e",
		"../" + good, "./" + good, "../log/" + good, dir + "/" + good, good + "/", strings.ToUpper(good), "super.0", "lock",
	} {
		r := varveRun(t, "", "log", "dump", "--dir", dir, "--segment", name)
		if r.code != exitUsage || r.out != "" || !strings.Contains(r.err, "name of a segment") {
			t.Errorf("%q: %+v", name, r)
		}
	}
	// And in the directory itself: what has no name of ours is never opened, moved or removed.
	strangers := []string{"..x", "CON", "%2e%2e", good + ".", good + " ", strings.ToUpper(good), "super.00", "x.tmp"}
	for _, name := range strangers {
		if err := os.WriteFile(dir+"/"+name, []byte("mine"), 0o000); err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "y\n", appendArgs(dir, "--verify-all-on-open")...)
	mustRun(t, "", logArgs("repair", dir, "--apply")...)
	for _, name := range strangers {
		if st, err := os.Stat(dir + "/" + name); err != nil || st.Size() != 4 {
			t.Errorf("%q: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
