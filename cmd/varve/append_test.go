package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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

// A command that is run again and again, and is over long before retention_check_interval, keeps what
// retention says all the same.
func TestRetentionOfShortRuns(t *testing.T) {
	dir := t.TempDir() + "/log"
	for range 20 {
		mustRun(t, strings.Repeat("x", 1500)+"\n", appendArgs(dir, "--retention-bytes", "4KiB")...)
	}
	if n := len(segments(t, dir)); n > 5 {
		t.Fatalf("%d segments are left of 20", n)
	}
	if out := mustRun(t, "", "log", "read", "--dir", dir); len(out) < 4500 || len(out) > 9000 {
		t.Fatalf("%d bytes are left", len(out))
	}
}

// A log without its spare is told so; nothing is wrong with its records.
func TestCheckSaysThatTheSpareIsMissing(t *testing.T) {
	dir := t.TempDir() + "/log"
	mustRun(t, "x\n", appendArgs(dir)...)
	if out := mustRun(t, "", "log", "check", "--dir", dir); strings.Contains(out, "spare") {
		t.Fatal(out)
	}
	if err := os.Remove(dir + "/spare"); err != nil {
		t.Fatal(err)
	}
	contains(t, mustRun(t, "", "log", "check", "--dir", dir), "spare     missing: the next open makes it, if there is room", "verdict   clean")
	contains(t, mustRun(t, "", "log", "check", "--dir", dir, "--json"), `"spare_missing": true`)
	mustRun(t, "", appendArgs(dir)...)
	if out := mustRun(t, "", "log", "check", "--dir", dir); strings.Contains(out, "spare") {
		t.Fatal(out)
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
