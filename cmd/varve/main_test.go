package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"varve"
)

func TestMain(m *testing.M) {
	// A command ends with its process; the last read of standard input may outlive run.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("varve/cmd/varve.newLineReader.func1"))
}

// result is what a command did.
type result struct {
	code     int
	out, err string
}

func varveRun(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(in), &out, &errOut)
	return result{code, out.String(), errOut.String()}
}

// mustRun runs a command that must succeed and returns its output.
func mustRun(t *testing.T, in string, args ...string) string {
	t.Helper()
	r := varveRun(t, in, args...)
	if r.code != exitOK {
		t.Fatalf("varve %s: exit %d, %s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// appendArgs avoids the limit on free space, which a small test machine may not have.
func appendArgs(dir string, more ...string) []string {
	return append([]string{"log", "append", "--dir", dir, "--min-free-bytes", "0"}, more...)
}

func TestAppendAndRead(t *testing.T) {
	dir := t.TempDir() + "/log"
	out := mustRun(t, "one\n\nthree\nlast without newline", appendArgs(dir, "--report-acks")...)
	var acks []struct {
		Offset int64
		Epoch  uint64
		Sum    string
	}
	for line := range strings.Lines(out) {
		acks = append(acks, struct {
			Offset int64
			Epoch  uint64
			Sum    string
		}{})
		if err := json.Unmarshal([]byte(line), &acks[len(acks)-1]); err != nil {
			t.Fatal(err)
		}
	}
	values := []string{"one", "", "three", "last without newline"}
	if len(acks) != len(values) {
		t.Fatalf("%d acks", len(acks))
	}
	for i, a := range acks {
		if want := fmt.Sprintf("%08x", crc32.Checksum([]byte(values[i]), castagnoli)); a.Offset != int64(i) || a.Epoch != 1 || a.Sum != want {
			t.Fatalf("ack %d: %+v, want sum %s", i, a, want)
		}
	}
	if out := mustRun(t, "", "log", "read", "--dir", dir); out != strings.Join(values, "\n")+"\n" {
		t.Fatalf("read: %q", out)
	}
	if out := mustRun(t, "", "log", "read", "--dir", dir, "--from", "2", "--max", "1"); out != "three\n" {
		t.Fatalf("read one: %q", out)
	}
	mustRun(t, "\xff\x00\n", appendArgs(dir)...)
	var r jsonRecord
	if err := json.Unmarshal([]byte(mustRun(t, "", "log", "read", "--dir", dir, "--from", "4", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Offset != 4 || r.Epoch != 2 || r.Value != nil || r.ValueBase64 == nil || *r.ValueBase64 != "/wA=" || r.Proven != nil {
		t.Fatalf("%+v", r)
	}
	if _, err := time.Parse(time.RFC3339Nano, r.Time); err != nil {
		t.Fatal(err)
	}
}

func TestLinesThatArriveTogetherAreBatched(t *testing.T) {
	dir := t.TempDir() + "/log"
	in, w := io.Pipe()
	done := make(chan int)
	go func() {
		done <- run(context.Background(), appendArgs(dir), in, io.Discard, io.Discard)
	}()
	for _, s := range []string{"a\nb\nc\n", "d\ne", "f\n"} {
		if _, err := io.WriteString(w, s); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if code := <-done; code != exitOK {
		t.Fatalf("exit %d", code)
	}
	name := filepath.Base(segments(t, dir)[0])
	if out := mustRun(t, "", "log", "dump", "--dir", dir, "--segment", name); !strings.Contains(out, "batches 3, offsets [0, 5)") {
		t.Fatalf("dump: %s", out)
	}
	if out := mustRun(t, "", "log", "read", "--dir", dir); out != "a\nb\nc\nd\nef\n" {
		t.Fatalf("read: %q", out)
	}
}

func TestLongLine(t *testing.T) {
	dir := t.TempDir() + "/log"
	r := varveRun(t, "ok\n"+strings.Repeat("x", 200)+"\n", appendArgs(dir, "--max-batch-bytes", "100")...)
	if r.code != exitFailed || !strings.Contains(r.err, "line 2 is longer than max_batch_bytes (100)") || strings.Count(r.err, "\n") != 1 {
		t.Fatalf("%+v", r)
	}
	if out := mustRun(t, "", "log", "read", "--dir", dir); out != "ok\n" {
		t.Fatalf("read: %q", out)
	}
}

func TestGeneratedLoad(t *testing.T) {
	dir := t.TempDir() + "/log"
	mustRun(t, "", appendArgs(dir, "--count", "1000", "--size", "50", "--writers", "4", "--batch", "7")...)
	mustRun(t, "", appendArgs(dir, "--count", "10", "--size", "20")...)
	var report checkReport
	if err := json.Unmarshal([]byte(mustRun(t, "", "log", "check", "--dir", dir, "--deep", "--generated", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	if report.Deep.Generated != 1010 || report.End != 1010 || report.Verdict != "clean" {
		t.Fatalf("%+v", report)
	}
	seen := map[uint64]bool{}
	for line := range strings.Lines(mustRun(t, "", "log", "read", "--dir", dir)) {
		i, _, err := generated([]byte(strings.TrimSuffix(line, "\n")), nil)
		if err != nil || seen[i] || i >= 1010 {
			t.Fatalf("record %d: %v", i, err)
		}
		seen[i] = true
	}
	mustRun(t, "no generated record\n", appendArgs(dir)...)
	if r := varveRun(t, "", "log", "check", "--dir", dir, "--generated"); r.code != exitDamaged || !strings.Contains(r.err, "offset 1010") {
		t.Fatalf("%+v", r)
	}
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.seg")
	if err != nil || len(names) == 0 {
		t.Fatal("no segments", err)
	}
	return names
}

// flip changes one byte of a file.
func flip(t *testing.T, name string, pos int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, pos); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b, pos); err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsReportedByPlace(t *testing.T) {
	dir := t.TempDir() + "/log"
	mustRun(t, "", appendArgs(dir, "--count", "50", "--size", "100")...)
	name := segments(t, dir)[0]
	flip(t, name, 5*512+200) // in the payload of offset 4 (a commit a sector)
	r := varveRun(t, "", "log", "read", "--dir", dir)
	if r.code != exitDamaged || strings.Count(r.out, "\n") != 4 {
		t.Fatalf("exit %d after %d records: %s", r.code, strings.Count(r.out, "\n"), r.err)
	}
	for _, want := range []string{filepath.Base(name), "byte 2560", "offset 4", "expected payload checksum", "found"} {
		if !strings.Contains(r.err, want) {
			t.Fatalf("no %q in %s", want, r.err)
		}
	}
	if strings.Count(r.err, "\n") != 1 {
		t.Fatalf("more than one line: %s", r.err)
	}
	if r := varveRun(t, "", "log", "read", "--dir", dir, "--from", "5"); r.code != exitOK || strings.Count(r.out, "\n") != 45 {
		t.Fatalf("behind the damage: exit %d, %d records: %s", r.code, strings.Count(r.out, "\n"), r.err)
	}
	if r := varveRun(t, "", "log", "check", "--dir", dir, "--deep"); r.code != exitDamaged || !strings.Contains(r.out, "damaged") {
		t.Fatalf("check: %+v", r)
	}
	before := snapshot(t, dir)
	for _, args := range [][]string{{"check"}, {"check", "--deep"}, {"read"}, {"dump"}, {"repair"}} {
		_ = varveRun(t, "", append([]string{"log", args[0], "--dir", dir}, args[1:]...)...)
	}
	if snapshot(t, dir) != before {
		t.Fatal("a command that only looks changed the directory")
	}
}

// snapshot returns names, sizes, times and contents of a directory.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, info.Size(), info.Mode(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			b.Write(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

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

func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{},
		{"log"},
		{"log", "append"},
		{"log", "nothing", "--dir", dir},
		{"log", "append", "--dir", dir, "--fsync", "sometimes"},
		{"log", "append", "--dir", dir, "--segment-bytes", "many"},
		{"log", "append", "--dir", dir, "--segment-bytes", "0"},
		{"log", "append", "--dir", dir, "--retention-bytes", "0"},
		{"log", "append", "--dir", dir, "--retention-age", "0"},
		{"log", "append", "--dir", dir, "--retention-age", "0s"},
		{"log", "append", "--dir", dir, "--retention-bytes", "-2"},
		{"log", "append", "--dir", dir, "--count", "-1"},
		{"log", "append", "--dir", dir, "--count", "1", "--size", "0"},
		{"log", "append", "--dir", dir, "--count", "1", "--writers", "0"},
		{"log", "append", "--dir", dir, "--fsync-interval-ms", "0"},
		{"log", "append", "--dir", dir, "--pending-bytes", "1"},
		{"log", "read", "--dir", dir, "--from", "-1"},
		{"log", "read", "--dir", dir, "--max", "-2"},
		{"log", "bench", "--dir", dir, "--seconds", "0"},
		{"log", "dump", "--dir", dir, "--segment", "../x"},
	} {
		r := varveRun(t, "x\n", args...)
		if r.code != exitUsage || r.err == "" {
			t.Errorf("varve %s: exit %d, %s", strings.Join(args, " "), r.code, r.err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Fatalf("usage errors made %v", entries)
	}
	if r := varveRun(t, "", "--help"); r.code != exitOK || !strings.Contains(r.out, "log append") {
		t.Fatalf("help: %+v", r)
	}
	if out := mustRun(t, "", "version"); !strings.HasPrefix(out, "varve ") {
		t.Fatal(out)
	}
}

func TestRetentionFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VARVE_RETENTION_BYTES", "0")
	if r := varveRun(t, "", appendArgs(dir+"/log")...); r.code != exitUsage {
		t.Fatalf("%+v", r)
	}
	t.Setenv("VARVE_RETENTION_BYTES", "-1")
	t.Setenv("VARVE_SEGMENT_BYTES", "4KiB")
	mustRun(t, "", appendArgs(dir+"/log", "--count", "100")...)
	if n := len(segments(t, dir+"/log")); n < 5 {
		t.Fatalf("%d segments of 4 KiB", n)
	}
}

func TestFailuresCreateNothing(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []string{"read", "check", "dump", "repair"} {
		if r := varveRun(t, "", "log", c, "--dir", dir+"/absent"); r.code != exitFailed || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s of an absent directory: %+v", c, r)
		}
	}
	if err := os.WriteFile(dir+"/stranger", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"append", "read", "check", "repair"} {
		if r := varveRun(t, "x\n", "log", c, "--dir", dir); r.code != exitFailed || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%s of a foreign directory: %+v", c, r)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("failed commands left %v", entries)
	}
	l, err := varve.Open(t.Context(), dir+"/log", varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	if r := varveRun(t, "x\n", appendArgs(dir+"/log")...); r.code != exitFailed || !strings.Contains(r.err, "in use") {
		t.Fatalf("append beside a writer: %+v", r)
	}
}

func TestReadBesideAWriterAndFollow(t *testing.T) {
	dir := t.TempDir() + "/log"
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	say := func(v string) {
		if _, err := l.Append(t.Context(), varve.Record{Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	say("a")
	say("b")
	time.Sleep(50 * time.Millisecond) // the frontier is saved when idle
	if out := mustRun(t, "", "log", "read", "--dir", dir); out != "a\nb\n" {
		t.Fatalf("read beside a writer: %q", out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, w := io.Pipe()
	go func() {
		code := run(ctx, []string{"log", "read", "--dir", dir, "--follow", "--max", "4"}, strings.NewReader(""), w, io.Discard)
		w.CloseWithError(fmt.Errorf("exit %d", code))
	}()
	got := make([]byte, 4)
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "a\nb\n" {
		t.Fatalf("follow: %q %v", got, err)
	}
	say("c")
	say("d")
	if _, err := io.ReadFull(out, got); err != nil || string(got) != "c\nd\n" {
		t.Fatalf("follow: %q %v", got, err)
	}
	if _, err := out.Read(got); err == nil || err.Error() != "exit 0" {
		t.Fatalf("follow ended with %v", err)
	}
}

func TestUnprovenRecordsAreMarked(t *testing.T) {
	// A copy of a running log is what a killed process leaves.
	dir, copied := t.TempDir()+"/log", t.TempDir()
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1, Fsync: varve.None})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	for range 3 {
		if _, err := l.Append(t.Context(), varve.Record{Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	r := varveRun(t, "", "log", "read", "--dir", copied, "--json")
	if r.code != exitOK || strings.Count(r.out, `"proven":false`) != 3 || !strings.HasPrefix(r.err, "3 records above evidence") {
		t.Fatalf("%+v", r)
	}
	if r := varveRun(t, "", "log", "check", "--dir", copied); r.code != exitOK || !strings.Contains(r.out, "rescue") {
		t.Fatalf("check: %+v", r)
	}
}

func TestBenchReport(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, "", "log", "bench", "--dir", dir, "--writers", "4", "--seconds", "0.1", "--min-free-bytes", "0", "--json")
	var m map[string]float64
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"records_per_second", "mb_per_second", "p50_us", "p99_us", "records_per_commit", "cpu_us_per_record",
		"raw_sync_per_second_before", "raw_sync_per_second_after", "ratio_to_raw", "ratio_to_ceiling",
	} {
		if m[key] <= 0 {
			t.Errorf("%s = %v", key, m[key])
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Fatalf("bench left %v", entries)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := 1; i <= 1000; i++ {
		h.record(time.Duration(i) * time.Microsecond)
	}
	for q, want := range map[float64]float64{0.5: 500, 0.99: 990} {
		if got := h.quantile(q); got < want || got > want*1.07 {
			t.Errorf("quantile %v: %v us, want %v", q, got, want)
		}
	}
	for v := uint64(1); v < 1<<40; v = v*5/4 + 1 {
		if top := bucketTop(bucketOf(v)); top < v || float64(top) > float64(v)*1.07+1 {
			t.Errorf("%d in a bucket up to %d", v, top)
		}
	}
}

func TestGenerate(t *testing.T) {
	if err := generatable(3, 4096); err != nil {
		t.Fatal(err)
	}
	if err := generatable(3, 4097); err == nil {
		t.Fatal("4096 fits into 3 digits")
	}
	v := make([]byte, 40)
	generate(v, 123456)
	i, scratch, err := generated(v, nil)
	if err != nil || i != 123456 {
		t.Fatal(i, err)
	}
	for k := range v {
		v[k] ^= 1
		if j, _, err := generated(v, scratch); err == nil {
			t.Fatalf("byte %d flipped: still generated value %d", k, j)
		}
		v[k] ^= 1
	}
	if _, _, err := generated(nil, nil); err == nil {
		t.Fatal("an empty value is generated")
	}
}

func TestExitOfABrokenPipe(t *testing.T) {
	s := &streams{err: io.Discard}
	if code := s.exit(errors.New("x")); code != exitFailed {
		t.Fatal(code)
	}
}

// TestReadmeListsTheSettings compares the table in the README with the flags.
func TestReadmeListsTheSettings(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	settings := reflect.TypeFor[settings]()
	for i := range settings.NumField() {
		f := settings.Field(i)
		key := strings.ToLower(strings.TrimPrefix(f.Tag.Get("env"), "VARVE_"))
		row := ""
		for line := range strings.Lines(readme) {
			if strings.HasPrefix(line, "| `") && strings.Contains(line, "`"+key+"`") {
				row = line
			}
		}
		if value := f.Tag.Get("default"); row == "" || value != "-1" && !strings.Contains(row, value) {
			t.Errorf("README.md: no row for %s with default %s: %q", key, value, row)
		}
		if _, ok := reflect.TypeFor[varve.Options]().FieldByName(f.Name); !ok && f.Name != "FsyncMode" && f.Name != "Preallocate" {
			t.Errorf("no option %s", f.Name)
		}
	}
}
