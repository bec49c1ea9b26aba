package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve"
	"varve/tiers/tiertest"
)

// syncedBuffer is what a command that runs beside the test has printed.
type syncedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncedBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serve runs a node until stop is called.
func serve(t *testing.T, args ...string) (addr string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said, code := &syncedBuffer{}, make(chan int, 1)
	all := append([]string{"serve", "--listen", "127.0.0.1:0", "--admin", "off", "--min-free-bytes", "0", "--fsync", "none"}, args...)
	go func() { code <- run(ctx, all, strings.NewReader(""), said, said) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if c := <-code; c != exitOK {
			t.Errorf("serve: exit %d, %s", c, said)
		}
	})
	t.Cleanup(stop)
	serving := regexp.MustCompile(`serving .* on (127\S+?);`)
	tiertest.Eventually(t, "the node serves", func() bool { return serving.MatchString(said.String()) })
	return serving.FindStringSubmatch(said.String())[1], stop
}

// produce sends records to a topic, one batch in each codec, and returns how many.
func produce(t *testing.T, addr, topic string) int {
	t.Helper()
	n := 0
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(codec))
		if err != nil {
			t.Fatal(err)
		}
		var recs []*kgo.Record
		for range 100 {
			recs = append(recs, &kgo.Record{
				Key: fmt.Appendf(nil, "k%d", n), Value: fmt.Appendf(nil, "value %d of the same text, the same text", n), Timestamp: time.UnixMilli(int64(1000 + n)),
				Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{byte(n)}}},
			})
			n++
		}
		err = c.ProduceSync(t.Context(), recs...).FirstErr()
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// nodeOnDisk makes a node with a topic, and ends it.
func nodeOnDisk(t *testing.T, args ...string) (node, partition string, records int) {
	t.Helper()
	node = t.TempDir() + "/node"
	addr, stop := serve(t, append(args, "--dir", node)...)
	records = produce(t, addr, "numbers")
	stop()
	return node, node + "/topics/numbers/1/0", records
}

// The commands that look at a log read a partition of a node as they read any other, in every codec.
func TestLookAtPartition(t *testing.T) {
	_, dir, records := nodeOnDisk(t)
	out := mustRun(t, "", "log", "check", "--deep", "--json", "--dir", dir)
	var r checkReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Verdict != "clean" || r.Deep.Records != int64(records) {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(mustRun(t, "", "log", "read", "--dir", dir)), "\n")
	if len(lines) != records {
		t.Fatalf("%d lines of %d records", len(lines), records)
	}
	for i, line := range lines {
		if want := fmt.Sprintf("value %d of the same text, the same text", i); line != want {
			t.Fatalf("record %d: %q, want %q", i, line, want)
		}
	}
	from := strings.Split(strings.TrimSpace(mustRun(t, "", "log", "read", "--json", "--from", "250", "--max", "2", "--dir", dir)), "\n")
	want := []string{
		`{"offset":250,"epoch":1,"time":"1970-01-01T00:00:01.25Z","key":"k250","value":"value 250 of the same text, the same text","headers":[{"key":"h","value_base64":"+g=="}]}`,
		`{"offset":251,"epoch":1,"time":"1970-01-01T00:00:01.251Z","key":"k251","value":"value 251 of the same text, the same text","headers":[{"key":"h","value_base64":"+w=="}]}`,
	}
	if len(from) != 2 || from[0] != want[0] || from[1] != want[1] {
		t.Errorf("got %q\nwant %q", from, want)
	}
	segments, _ := filepath.Glob(dir + "/*.seg")
	dump := mustRun(t, "", "log", "dump", "--dir", dir, "--segment", filepath.Base(segments[0]))
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		if !strings.Contains(dump, "RecordBatch attributes") || !strings.Contains(dump, "compression "+codec+" records 100 base time 1970") {
			t.Errorf("no batch with compression %s in\n%s", codec, dump)
		}
	}
}

// A RecordBatch that the log's checksums vouch for and that is none is damage, with its place; read goes up to it.
func TestPartitionWithDamagedBatch(t *testing.T) {
	_, dir, records := nodeOnDisk(t)
	l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.AppendBatch(varve.Batch{Kind: varve.KindKafka, Records: 3, Payload: make([]byte, 80)})
	if err == nil {
		_, err = p.Wait(t.Context())
	}
	if err == nil {
		err = l.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "--deep"}, {"read"}} {
		r := varveRun(t, "", append(append([]string{"log"}, args...), "--dir", dir)...)
		if r.code != exitDamaged || !strings.Contains(r.err, fmt.Sprintf("offset %d: expected a RecordBatch with magic 2, found 0", records)) {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
}

// What appends to a log, or moves its records, is not for the logs of a node, where they lie and where they were
// copied to; a repair is, once the node has ended.
func TestLogsOfNodeAreRefused(t *testing.T) {
	node, dir, _ := nodeOnDisk(t)
	copied := t.TempDir() + "/copy"
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	bucket := "file://" + t.TempDir()
	before := snapshot(t, node)
	for _, args := range [][]string{
		{"append", "--dir", dir},
		{"append", "--dir", node + "/catalogue"},
		{"append", "--dir", copied},
		{"append", "--dir", t.TempDir() + "/new", "--cold-url", bucket, "--cold-name", "node/0123456789abcdef/numbers/1/0"},
		{"offload", "--dir", dir, "--cold-url", bucket},
		{"offload", "--dir", copied, "--cold-url", bucket},
	} {
		r := varveRun(t, "hello\n", append([]string{"log"}, append(args, "--min-free-bytes", "0")...)...)
		named := node
		if args[2] != dir && args[2] != node+"/catalogue" {
			named = "a partition of a node"
		}
		if r.code != exitUsage || !strings.Contains(r.err, named) {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
	if after := snapshot(t, node); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the node was changed: %v, then %v", before, after)
	}
	mustRun(t, "", "log", "repair", "--apply", "--dir", dir)
	_, stop := serve(t, "--dir", node)
	if r := varveRun(t, "", "log", "repair", "--apply", "--dir", dir); r.code != exitFailed || !strings.Contains(r.err, "running") {
		t.Errorf("beside the node: exit %d, %s", r.code, r.err)
	}
	stop()
}

// A catalogue that cannot be read is damage; the text names the command for this very node.
func TestUnreadableCatalogue(t *testing.T) {
	node, _, _ := nodeOnDisk(t)
	l, err := varve.Open(t.Context(), node+"/catalogue", varve.Options{MinFreeBytes: -1})
	if err == nil {
		_, err = l.Append(t.Context(), varve.Record{Value: []byte("1")})
	}
	if err == nil {
		err = l.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	r := varveRun(t, "", "serve", "--listen", "127.0.0.1:0", "--admin", "off", "--dir", node)
	if r.code != exitDamaged || !strings.Contains(r.err, "varve topic rebuild-catalogue --dir "+node) {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	mustRun(t, "", "log", "read", "--dir", node+"/catalogue")
}

// With the configuration of the node, the commands find a partition in the tiers by themselves.
func TestPartitionIsFoundInTheTiers(t *testing.T) {
	bucket := t.TempDir() + "/bucket"
	config := t.TempDir() + "/n.yaml"
	if err := os.WriteFile(config, []byte("cold:\n  url: file://"+bucket+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node, dir, records := nodeOnDisk(t, "--config", config, "--create", "--cold-max-upload-age", "1s")
	_, stop := serve(t, "--dir", node, "--config", config)
	tiertest.Eventually(t, "the records are in the bucket", func() bool {
		objects, _ := filepath.Glob(bucket + "/node/*/numbers/1/0/manifest.json")
		return len(objects) == 1
	})
	stop()
	id, err := nodeID(node)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"log", "tiers"},
		{"log", "check", "--deep"},
		{"cold", "scrub"},
		{"log", "check", "--cold-name", "node/" + id + "/numbers/1/0"},
	} {
		r := varveRun(t, "", append(args, "--dir", dir, "--config", config)...)
		if r.code != exitOK || !strings.Contains(r.out, "node/"+id+"/numbers/1/0") {
			t.Errorf("%s: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
	if got := strings.Count(mustRun(t, "", "log", "read", "--dir", dir, "--config", config), "\n"); got != records {
		t.Errorf("%d records, want %d", got, records)
	}
	if out := mustRun(t, "", "log", "check", "--dir", node+"/catalogue", "--config", config); strings.Contains(out, "cold") {
		t.Errorf("a catalogue is in no tier: %s", out)
	}
}
