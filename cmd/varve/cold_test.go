package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"varve/tiers/s3"
	"varve/tiers/tiertest"
)

// tiered is a configuration with a bucket in a directory, and segments so small that most of what is
// appended is uploaded.
func tiered(t *testing.T, root string) (config string) {
	t.Helper()
	config = filepath.Join(root, "varve.yaml")
	text := "segment_bytes: 8KiB\nmin_free_bytes: 0\ncold:\n  url: file://" + root + "/bucket\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return config
}

// moved makes a log of n generated records and moves them to the bucket.
func moved(t *testing.T, n int) (root, dir, config string) {
	t.Helper()
	root = t.TempDir()
	dir, config = root+"/orders", tiered(t, root)
	mustRun(t, "", "log", "append", "--dir", dir, "--config", config, "--create", "--count", fmt.Sprint(n), "--size", "100")
	mustRun(t, "", "log", "offload", "--dir", dir, "--config", config)
	return root, dir, config
}

// TestCommandsWithAColdTier: a log goes through its life with the commands of the program.
func TestCommandsWithAColdTier(t *testing.T) {
	root, dir, config := moved(t, 500)
	with := func(command string, more ...string) []string {
		return append([]string{"log", command, "--dir", dir, "--config", config}, more...)
	}
	if left, err := filepath.Glob(dir + "/*.seg"); err != nil || len(left) > 0 {
		t.Fatalf("on disk are %v, %v", left, err)
	}
	said := varveRun(t, "", with("append", "--count", "100", "--size", "100", "--upload-wait", "0s")...)
	var first int
	if _, at, _ := strings.Cut(said.err, "records are not in the cold tier yet, ["); said.code != exitOK || !strings.HasSuffix(at, ", 600): they are uploaded while the log is open; --upload-wait says how long to wait for that, varve log offload waits for all, and takes them off the disk\n") {
		t.Fatal(said)
	} else if _, err := fmt.Sscanf(at, "%d", &first); err != nil || first < 500 || !strings.Contains(said.err, fmt.Sprintf("%d records are not", 600-first)) {
		t.Fatal(said, err)
	}
	before := content(t, root)
	out := mustRun(t, "", with("check", "--deep", "--generated")...)
	contains(t, out, "file://"+root+"/bucket/orders holds what is below offset 5", "segments/00000000000000000000-", "600 are generated records", "verdict   clean")
	if n := strings.Count(mustRun(t, "", with("read")...), "\n"); n != 600 {
		t.Fatalf("%d records", n)
	}
	var r checkReport
	if err := json.Unmarshal([]byte(mustRun(t, "", with("check", "--json")...)), &r); err != nil || *r.Cold.Exported < 500 || len(r.Cold.Objects) < 5 {
		t.Fatalf("%+v, %v", r.Cold, err)
	}
	contains(t, mustRun(t, "", with("repair")...), "nothing to repair")
	if content(t, root) != before {
		t.Fatal("something was written")
	}

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	before = content(t, root)
	if n := strings.Count(mustRun(t, "", with("read")...), "\n"); n < 500 { // of what the bucket holds, without a directory
		t.Fatalf("%d records", n)
	}
	if content(t, root) != before {
		t.Fatal("something was written")
	}
	end := *r.Cold.Exported
	got := varveRun(t, "x\n", with("append")...)
	if got.code != exitOK {
		t.Fatal(got)
	}
	contains(t, got.err, fmt.Sprintf("was rebuilt from file://%s/bucket/orders, offsets [0, %d)", root, end), fmt.Sprintf("offsets [%d, %d) of epoch", end, end+1))
	if n := strings.Count(mustRun(t, "", with("read")...), "\n"); int64(n) != end+1 {
		t.Fatalf("%d records, want %d", n, end+1)
	}
}

// TestShortRunsWithAColdTier: a command that appends a little, again and again, leaves nothing on the disk
// alone, and disk and bucket keep what retention says.
func TestShortRunsWithAColdTier(t *testing.T) {
	root := t.TempDir()
	dir, config := root+"/orders", tiered(t, root)
	args := []string{"log", "append", "--dir", dir, "--config", config, "--local-retention-bytes", "1", "--retention-bytes", "6KiB"}
	for i := range 20 {
		r := varveRun(t, strings.Repeat("x", 1500)+"\n", append(args, "--create")...)
		if r.code != exitOK || strings.Contains(r.err, "not in the cold tier") {
			t.Fatalf("run %d: %+v", i, r)
		}
	}
	objects, err := filepath.Glob(root + "/bucket/orders/segments/*")
	if n := len(segments(t, dir)); err != nil || n > 2 || len(objects) > 7 {
		t.Errorf("%d segments on disk, %d objects, %v", n, len(objects), err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if out := mustRun(t, "", "log", "read", "--dir", dir, "--config", config); len(out) < 4500 || len(out) > 10500 {
		t.Errorf("%d bytes are left", len(out))
	}
	contains(t, mustRun(t, "", "cold", "scrub", "--config", config), "verdict     clean")
}

// TestUploadWaitEnds: nobody waits for long for a bucket that does not answer, nor after an interrupt. What
// was appended is safe, and goes to the bucket with the next run.
func TestUploadWaitEnds(t *testing.T) {
	root, dir, config := moved(t, 10)
	for _, interrupted := range []bool{false, true} {
		in, lines := io.Pipe()
		acks, out := io.Pipe()
		said := new(bytes.Buffer)
		ctx, interrupt := context.WithCancel(t.Context())
		code := make(chan int)
		go func() {
			code <- run(ctx, []string{"log", "append", "--dir", dir, "--config", config, "--report-acks"}, in, out, said)
		}()
		if _, err := io.WriteString(lines, "x\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := acks.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		objects := root + "/bucket/orders/segments"
		if err := errors.Join(os.Rename(objects, root+"/elsewhere"), os.WriteFile(objects, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		_ = lines.Close()
		if interrupted {
			time.AfterFunc(200*time.Millisecond, interrupt)
		}
		began := time.Now()
		if got := <-code; got != exitOK || time.Since(began) > 10*time.Second {
			t.Errorf("exit %d after %v: %s", got, time.Since(began), said)
		}
		interrupt()
		contains(t, said.String(), "appended 1 record", "warning: the cold tier does not answer; it ends at offset 1")
		if err := errors.Join(os.Remove(objects), os.Rename(root+"/elsewhere", objects)); err != nil {
			t.Fatal(err)
		}
		if r := varveRun(t, "y\n", "log", "append", "--dir", dir, "--config", config); r.code != exitOK || strings.Contains(r.err, "cold tier") {
			t.Errorf("%+v", r)
		}
	}
}

// TestDamageIsReadFromTheColdTier: what is damaged on disk and held by the bucket is no loss.
func TestDamageIsReadFromTheColdTier(t *testing.T) {
	root := t.TempDir()
	dir, config := root+"/orders", tiered(t, root)
	mustRun(t, "", "log", "append", "--dir", dir, "--config", config, "--create", "--count", "300", "--size", "100")
	mustRun(t, "x\n", "log", "append", "--dir", dir, "--config", config) // what the first left sealed is uploaded meanwhile
	name := segments(t, dir)[1]
	for range 100 {
		if strings.Contains(mustRun(t, "", "log", "check", "--dir", dir, "--config", config), "segments/"+filepath.Base(name)[:20]) {
			break
		}
		mustRun(t, "x\n", "log", "append", "--dir", dir, "--config", config)
	}
	flip(t, name, 3*512+150) // in the payload of a batch
	before := content(t, root)
	for _, args := range [][]string{{"read"}, {"check"}, {"check", "--deep"}} {
		out := mustRun(t, "", append([]string{"log", args[0], "--dir", dir, "--config", config}, args[1:]...)...)
		if args[0] == "read" && strings.Count(out, "\n") < 300 {
			t.Fatalf("%d records", strings.Count(out, "\n"))
		}
	}
	if content(t, root) != before {
		t.Fatal("something was written")
	}
	contains(t, mustRun(t, "", "log", "repair", "--dir", dir, "--config", config), "nothing to repair")
	fails(t, root, exitDamaged, []string{"log", "check", "--dir", dir, "--deep"}, filepath.Base(name))
}

// TestBenchWithAColdTier: it leaves nothing in the bucket.
func TestBenchWithAColdTier(t *testing.T) {
	root := t.TempDir()
	config := tiered(t, root)
	mustRun(t, "", "log", "bench", "--dir", root+"/bench", "--config", config, "--writers", "2", "--seconds", "0.1", "--size", "500")
	for _, dir := range []string{"bench", "bucket"} {
		entries, _ := os.ReadDir(root + "/" + dir)
		for _, e := range entries {
			if e.Name() != ".varve" {
				t.Errorf("%s is left", e.Name())
			}
		}
	}
}

// TestColdTierThatIsNotThere: what cannot work is said before anything is done.
func TestColdTierThatIsNotThere(t *testing.T) {
	root := t.TempDir()
	dir, config := root+"/orders", tiered(t, root)
	args := []string{"log", "append", "--dir", dir, "--config", config}
	fails(t, root, exitFailed, args, "cold.url", root+"/bucket", "create the bucket", "--create") // no bucket
	mustRun(t, "", "log", "bench", "--dir", root+"/bench", "--config", config, "--writers", "1", "--seconds", "0.1")
	fails(t, root, exitFailed, args, "neither the directory nor the bucket holds a log", "--create") // no log
	for _, command := range []string{"read", "check", "repair"} {
		fails(t, root, exitFailed, []string{"log", command, "--dir", dir, "--config", config}, "neither the directory nor the bucket holds a log")
	}
	for name, want := range map[string]string{".varve": "own folder", "a\\b": "backslash", strings.Repeat("z", 300): "more than 255"} {
		fails(t, root, exitFailed, []string{"log", "append", "--dir", root + "/" + name, "--config", config, "--create"}, want, "cold.name")
	}
	fails(t, root, exitFailed, []string{"log", "append", "--dir", "/", "--config", config, "--create"}, "cold.name")
	if err := os.WriteFile(root+"/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, root, exitFailed, append(args, "--cold-url", "file://"+root+"/file", "--create"), root+"/file")
	if err := os.Mkdir(root+"/full", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/full/notes.txt", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	fails(t, root, exitFailed, append(args, "--cold-url", "file://"+root+"/full", "--create"), root+"/full", "choose an empty directory")
}

// TestBucketThatIsNotMounted: a log that was closed cleanly is read without its bucket; appends wait for
// it, and nothing is made in its place. So it is with a directory that is missing, and with the empty
// one that a mount leaves.
func TestBucketThatIsNotMounted(t *testing.T) {
	defer func(d time.Duration) { tierWait = d }(tierWait)
	root, dir, config := moved(t, 100)
	mustRun(t, "", "log", "append", "--dir", dir, "--config", config, "--count", "10", "--size", "100")
	with := func(command string, more ...string) []string {
		return logArgs(command, dir, append(more, "--config", config)...)
	}
	mount := func(from, to string) {
		if err := os.Rename(root+from, root+to); err != nil {
			t.Fatal(err)
		}
	}
	mount("/bucket", "/elsewhere")
	lost := t.TempDir() + "/bucket" // of a copy of the log, for which nobody waits any more
	if err := os.CopyFS(root+"/copy/orders", os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "", logArgs("append", root+"/copy/orders", "--cold-url", "file://"+lost, "--min-free-bytes", "0", "--create", "--accept-loss")...)
	contains(t, mustRun(t, "", "cold", "scrub", "--cold-url", "file://"+lost), "records [100, 110)", "verdict     clean")
	for _, empty := range []bool{false, true} {
		tierWait = 100 * time.Millisecond
		if empty {
			if err := os.Mkdir(root+"/bucket", 0o755); err != nil {
				t.Fatal(err)
			}
		}
		before := content(t, root)
		r := varveRun(t, "1\n", with("append", "--create")...)
		if r.code != exitFailed {
			t.Fatal(r)
		}
		contains(t, r.err, "warning: the cold tier does not answer: --create makes no new bucket", "the bucket is not there", "mount", "appends wait for it")
		if entries, err := os.ReadDir(root + "/bucket"); err == nil && len(entries) > 0 || content(t, root) != before {
			t.Error("something was made in place of the bucket")
		}
		r = varveRun(t, "", with("read", "--from", "100")...)
		if n := strings.Count(r.out, "\n"); n != 10 || r.code != exitOK {
			t.Errorf("%d records, %+v", n, r)
		}
		r = varveRun(t, "", with("check", "--deep")...)
		contains(t, r.out, "does not answer", "verdict   incomplete")
		contains(t, varveRun(t, "", with("check", "--json")...).out, `"exported": null`)
		fails(t, root, exitFailed, []string{"cold", "scrub", "--config", config}, "the bucket is not there")
		fails(t, root, exitFailed, []string{"log", "append", "--dir", root + "/new", "--config", config}, "the bucket is not there", "--create")
	}
	tierWait = time.Minute
	appended := make(chan result)
	go func() { appended <- varveRun(t, "1\n", with("append")...) }()
	time.Sleep(200 * time.Millisecond) // it waits
	if err := os.Remove(root + "/bucket"); err != nil {
		t.Fatal(err)
	}
	mount("/elsewhere", "/bucket")
	if r := <-appended; r.code != exitOK {
		t.Fatal(r)
	}
	if n := strings.Count(mustRun(t, "", with("read")...), "\n"); n != 111 {
		t.Errorf("%d records", n)
	}
}

// TestBucketAndLogApart: one directory cannot be both, nor lie in the other, and finding that out leaves
// nothing.
func TestBucketAndLogApart(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(root+"/empty", 0o755), os.Symlink(root+"/empty", root+"/link")); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]string{
		{"orders", "orders"},
		{"orders", "orders/bucket"},
		{"bucket/orders", "bucket"},
		{"bucket/../orders", "orders"},
		{"empty", "empty"},
		{"link", "empty"},
		{"link/orders", "empty"},
		{"empty", "link/bucket"},
	} {
		args := []string{"log", "append", "--dir", root + "/" + x[0], "--cold-url", "file://" + root + "/" + x[1], "--min-free-bytes", "0", "--create"}
		fails(t, root, exitUsage, args, "cold.url", "share a directory", "one of its own")
	}
	mustRun(t, "x\n", "log", "append", "--dir", root+"/orders", "--cold-url", "file://"+root+"/orders.bucket", "--min-free-bytes", "0", "--create")
	fails(t, root, exitUsage, []string{"log", "read", "--dir", root + "/orders", "--cold-url", "file://" + root}, "share a directory")
}

// TestBucketOfAnotherLog: two logs cannot share a place in the bucket.
func TestBucketOfAnotherLog(t *testing.T) {
	root, _, config := moved(t, 100)
	other := root + "/elsewhere/orders"
	mustRun(t, "x\n", appendArgs(other)...)
	for _, command := range []string{"append", "check", "repair"} {
		fails(t, root, exitFailed, []string{"log", command, "--dir", other, "--config", config}, "manifest.json", "belongs to another log", "cold.name")
	}
	mustRun(t, "x\n", "log", "append", "--dir", other, "--config", config, "--cold-name", "others/1", "--create")
	if n := strings.Count(mustRun(t, "", "log", "read", "--dir", other, "--config", config, "--cold-name", "others/1"), "\n"); n != 2 {
		t.Errorf("%d records", n)
	}
}

// TestUnreachableS3: a new log needs its bucket; one that was closed cleanly is read meanwhile, and
// appends wait.
func TestUnreachableS3(t *testing.T) {
	defer func(d time.Duration) { tierWait = d }(tierWait)
	tierWait = 200 * time.Millisecond
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil { // nobody listens there now
		t.Fatal(err)
	}
	root := t.TempDir()
	config := configured(t, "cold: {url: \"s3://bucket/logs\", endpoint: \""+endpoint+"\"}\n")
	with := func(command, dir string, more ...string) []string {
		return append(logArgs(command, dir, "--config", config), more...)
	}
	fails(t, root, exitFailed, with("append", root+"/new", "--create"), "does not answer", endpoint)
	for _, command := range []string{"read", "check", "repair"} {
		fails(t, root, exitFailed, with(command, root+"/new"), endpoint)
	}
	mustRun(t, "1\n2\n", appendArgs(root+"/old")...)
	r := varveRun(t, "3\n", with("append", root+"/old")...)
	if r.code != exitFailed {
		t.Fatal(r)
	}
	contains(t, r.err, "warning: the cold tier does not answer", "appends wait for it", endpoint)
	if n := strings.Count(mustRun(t, "", with("read", root+"/old")...), "\n"); n != 2 {
		t.Errorf("%d records", n)
	}
	r = varveRun(t, "", with("check", root+"/old", "--deep")...)
	if r.code != exitFailed {
		t.Error(r)
	}
	contains(t, r.out, "does not answer", "verdict   incomplete", "verified  2 records")
	fails(t, root, exitFailed, with("repair", root+"/old"), "may hold what a repair would give up")
}

// TestCommandsWithS3: the same commands on a real server, also with what cannot work there.
func TestCommandsWithS3(t *testing.T) {
	server := tiertest.StartS3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", server.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	root := t.TempDir()
	dir := root + "/orders"
	config := configured(t, fmt.Sprintf("segment_bytes: 8KiB\nmin_free_bytes: 0\ncold: {url: \"s3://%s/varve-%d\", endpoint: %q}\n",
		server.Bucket, time.Now().UnixNano(), server.Endpoint))
	with := func(command string, more ...string) []string {
		return append([]string{"log", command, "--dir", dir, "--config", config}, more...)
	}
	fails(t, root, exitFailed, with("append", "--create", "--cold-url", "s3://no-such-bucket"), "no-such-bucket", "create the bucket")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	fails(t, root, exitFailed, with("append", "--create"), "access denied", "give other credentials")
	fails(t, root, exitFailed, with("read"), "access denied", "give other credentials")
	t.Setenv("AWS_SECRET_ACCESS_KEY", server.SecretKey)
	mustRun(t, "", with("append", "--create", "--count", "200", "--size", "100")...)
	mustRun(t, "", with("offload")...)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "", with("append", "--count", "10", "--size", "100")...)
	contains(t, mustRun(t, "", with("check", "--deep", "--generated")...), "210 are generated records")
}

// TestScrubCommand: exit codes, and what is said of a log that is whole, damaged, or without a manifest.
func TestScrubCommand(t *testing.T) {
	root, dir, config := moved(t, 300)
	before := content(t, root)
	out := mustRun(t, "", "cold", "scrub", "--config", config)
	contains(t, out, "file://"+root+"/bucket/orders", "unverified  nothing", "verdict     clean")
	if content(t, root) != before {
		t.Fatal("something was written")
	}
	fails(t, root, exitFailed, []string{"cold", "rebuild-manifest", "--config", config, "--apply"}, "orders", "nothing to rebuild")
	fails(t, root, exitUsage, []string{"cold", "scrub"}, "cold.url")
	for _, args := range [][]string{{"scrub"}, {"scrub", "--json"}, {"scrub", "--repair"}, {"rebuild-manifest"}, {"rebuild-manifest", "--apply"}} {
		r := fails(t, root, exitFailed, append(append([]string{"cold"}, args...), "--config", config, "--cold-name", "invoices"), "invoices: there is no log of that name", root+"/bucket", "cold.name")
		if r.out != "" {
			t.Errorf("%v: %s", args, r.out)
		}
	}
	fails(t, root, exitDamaged, []string{"cold", "scrub", "--config", config, "--cold-name", "invoices", "--dir", dir}, "invoices: nothing of it is below", dir, "has had records there")
	fails(t, root, exitUsage, []string{"cold", "scrub", "--config", config, "--older-than=-1s"}, "--older-than")

	objects, err := filepath.Glob(root + "/bucket/orders/segments/*")
	if err != nil || len(objects) < 4 {
		t.Fatal(objects, err)
	}
	b, err := os.ReadFile(objects[1])
	if err != nil {
		t.Fatal(err)
	}
	flip(t, objects[1], 700)
	r := fails(t, root, exitDamaged, []string{"cold", "scrub", "--config", config, "--repair"}, "orders", "damaged")
	contains(t, r.out, "checksum    segments/"+filepath.Base(objects[1]), "unverified  from offset ", ", appended by 20", "verdict     damaged")
	r = fails(t, root, exitDamaged, []string{"cold", "scrub", "--config", config, "--json", "--dir", dir}, "orders", "damaged")
	var x scrubbed
	if err := json.Unmarshal([]byte(r.out), &x); err != nil || x.Verdict != "damaged" || len(x.Anomalies) != 1 || x.Unverified == nil || x.Since == "" {
		t.Fatalf("%+v, %v", x, err)
	}
	if err := os.WriteFile(objects[1], b, 0o640); err != nil {
		t.Fatal(err)
	}

	flip(t, root+"/bucket/orders/manifest.json", 100)
	fails(t, root, exitDamaged, []string{"cold", "scrub", "--config", config}, "orders: the manifest is damaged", "varve cold rebuild-manifest")
	for _, command := range []string{"append", "read", "check"} {
		fails(t, root, exitDamaged, []string{"log", command, "--dir", dir, "--config", config}, "manifest.json", "varve cold rebuild-manifest")
	}
	r = fails(t, root, exitDamaged, []string{"cold", "scrub", "--config", config, "--cold-name", "orders", "--repair"}, "rebuild-manifest")
	before = content(t, root)
	contains(t, mustRun(t, "", "cold", "rebuild-manifest", "--config", config), "records [0, 300)", "nothing was written")
	if content(t, root) != before {
		t.Fatal("something was written")
	}
	contains(t, mustRun(t, "", "cold", "rebuild-manifest", "--config", config, "--apply"), "written     the manifest")
	contains(t, mustRun(t, "", "cold", "scrub", "--config", config), "verdict     clean")
	mustRun(t, "x\n", "log", "append", "--dir", dir, "--config", config)
	contains(t, mustRun(t, "", "log", "check", "--dir", dir, "--config", config, "--deep"), "verified  301 records")

	mustRun(t, "x\n", "log", "append", "--dir", root+"/others", "--config", config, "--create")
	fails(t, root, exitUsage, []string{"cold", "rebuild-manifest", "--config", config}, "2 logs", "--cold-name")
}

// TestTiersCommand: the map, as text and as JSON; it writes nothing.
func TestTiersCommand(t *testing.T) {
	root, dir, config := moved(t, 300)
	mustRun(t, "", "log", "append", "--dir", dir, "--config", config, "--count", "100", "--size", "100")
	before := content(t, root)
	contains(t, mustRun(t, "", "log", "tiers", "--dir", dir, "--config", config), "orders   bucket  [0 ──", "         WAL    ", "[300 ──", " 400)   committed 400")
	var r tiersReport
	if err := json.Unmarshal([]byte(mustRun(t, "", "log", "tiers", "--dir", dir, "--config", config, "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Tiers) != 2 || r.Tiers[0].Tier != "cold" || r.Tiers[0].End < 300 || !reflect.DeepEqual(r.Tiers[1], tierLine{Tier: "hot", Start: 300, End: 400, Bytes: r.Tiers[1].Bytes, Segments: r.Tiers[1].Segments}) ||
		r.Committed != 400 || r.Running || r.Name != "orders" {
		t.Errorf("%+v", r)
	}
	if content(t, root) != before {
		t.Fatal("something was written")
	}
	contains(t, mustRun(t, "", "log", "offload", "--dir", dir, "--config", config, "--before", "350"), "")
	if err := json.Unmarshal([]byte(mustRun(t, "", "log", "tiers", "--dir", dir, "--config", config, "--json")), &r); err != nil || r.Tiers[1].Start <= 300 || r.Tiers[1].Start > 350 {
		t.Errorf("%+v, %v", r, err)
	}
	r2 := varveRun(t, "", "log", "offload", "--dir", dir, "--config", config, "--before", "4000")
	if r2.code != exitFailed || !strings.Contains(r2.err, "beyond the committed end") {
		t.Errorf("%+v", r2)
	}
	fails(t, root, exitUsage, []string{"log", "offload", "--dir", dir}, "cold.url")
	fails(t, root, exitUsage, []string{"log", "offload", "--dir", dir, "--config", config, "--before=-1"}, "--before")
}

// TestS3Options: what the keys of a bucket make of a request. TestConfigErrors has what is refused.
func TestS3Options(t *testing.T) {
	for args, want := range map[string]s3.Options{
		"":                                {},
		"--cold-endpoint=http://h:1/":     {Endpoint: "http://h:1", PathStyle: true},
		"--cold-path-style=always":        {PathStyle: true},
		"--cold-sse=AES256":               {SSE: "AES256"},
		"--cold-sse=aws:kms":              {SSE: "aws:kms"},
		"--cold-region=x --cold-sse=none": {Region: "x"},
		"--cold-endpoint=http://h:1 --cold-path-style=never":     {Endpoint: "http://h:1"},
		"--cold-sse=aws:kms:dsse --cold-sse-kms-key=alias/varve": {SSE: "aws:kms:dsse", KMSKey: "alias/varve"},
	} {
		want.Bucket, want.Prefix = "bucket", "some/prefix"
		s, x := defaults(), explainedJSON(t, append(strings.Fields(args), "--cold-url=s3://bucket/some/prefix")...)
		for i := range table {
			if err := table[i].set(s, strings.Trim(x.setting(table[i].name).Value, `"[]`)); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.s3Options(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", args, got, err, want)
		}
	}
}

// TestBucketThatTakesNothing: one that can be read and not written to, or is full, is waited for so long and no
// longer, by an append and by an offload, which say why; what is on disk is as it was, and is read.
func TestBucketThatTakesNothing(t *testing.T) {
	defer func(d time.Duration) { tierWait = d }(tierWait)
	tierWait = time.Second
	root, dir, config := moved(t, 100)
	mustRun(t, "", "log", "append", "--dir", dir, "--config", config, "--count", "10", "--size", "100")
	tmp := root + "/bucket/.varve/tmp" // where every change begins
	if err := os.Rename(tmp, tmp+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tmp, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := content(t, root)
	for _, command := range []string{"append", "offload"} {
		r := varveRun(t, "1\n", logArgs(command, dir, "--config", config)...)
		if r.code != exitFailed {
			t.Fatal(command, r)
		}
		contains(t, r.err, "waiting up to 1s", "appends wait for it", "claim the manifest", "manifest.json")
		if strings.Contains(r.err, "lag segments: 0") {
			t.Error("it says that nothing is behind:", r.err)
		}
	}
	if content(t, root) != before {
		t.Error("something was written")
	}
	if n := strings.Count(mustRun(t, "", logArgs("read", dir, "--config", config)...), "\n"); n != 110 {
		t.Errorf("%d records", n)
	}
	if r := varveRun(t, "1\n", logArgs("append", root+"/new", "--config", config, "--create")...); r.code != exitFailed { // nothing to serve
		t.Fatal(r)
	}
}
