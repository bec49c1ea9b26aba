package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve/broker/brokertest"
	"varve/tiers/tiertest"
)

// kcat is librdkafka, the library below most clients. VARVE_RECORDS sets how many records go in and out.

const recordsDefault = 20_000

var codecs = []struct {
	name   string
	number uint8
}{{"none", 0}, {"gzip", 1}, {"snappy", 2}, {"lz4", 3}, {"zstd", 4}}

// kcat runs kcat and returns what it printed.
func kcat(t *testing.T, n *brokertest.Node, in io.Reader, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("kcat")
	if err != nil {
		tiertest.Lacks(t, "kcat", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-b", n.Addr, "-m", "30", "-X", "log.connection.close=true"}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat %s: %v\n%s", strings.Join(args, " "), err, errOut.String())
	}
	for line := range strings.Lines(errOut.String()) {
		if strings.HasPrefix(line, "%") && !strings.Contains(line, "Reached end of topic") { // a complaint of the library's
			t.Errorf("kcat %s: %s", strings.Join(args, " "), line)
		}
	}
	return out.String()
}

// TestKcatCodecs: keys, headers and values come back as they were sent, with every codec, and batches are
// stored as they came: nobody packs or unpacks them on the way.
func TestKcatCodecs(t *testing.T) {
	n := brokertest.Start(t)
	for _, codec := range codecs {
		t.Run(codec.name, func(t *testing.T) {
			topic := "codec-" + codec.name
			var in, want strings.Builder
			for i := range 500 {
				value := fmt.Sprintf("value %d of many that look alike, as a codec likes it", i)
				fmt.Fprintf(&in, "key-%d=%s\n", i, value)
				fmt.Fprintf(&want, "%d key-%d origin=kcat,empty= %s\n", i, i, value)
			}
			kcat(t, n, strings.NewReader(in.String()), "-P", "-t", topic, "-p", "0", "-K=", "-H", "origin=kcat", "-H", "empty=", "-z", codec.name)
			got := kcat(t, n, nil, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%o %k %h %s\n")
			if got != want.String() {
				t.Fatalf("got\n%.400s\nwant\n%.400s", got, want.String())
			}
			for _, r := range consume(t.Context(), t, n, topic, 1)[100:101] {
				if is := r.Attrs.CompressionType(); is != codec.number {
					t.Errorf("stored with codec %d, want %d", is, codec.number)
				}
			}
		})
	}
}

// TestKcatIdempotent: an idempotent producer, with a null value and an empty one.
func TestKcatIdempotent(t *testing.T) {
	n := brokertest.Start(t)
	kcat(t, n, strings.NewReader("a:1\nb:2\nc:\n"), "-P", "-t", "orders", "-p", "0", "-K:", "-Z", "-z", "zstd", "-X", "enable.idempotence=true")
	if got := kcat(t, n, nil, "-C", "-t", "orders", "-o", "beginning", "-e", "-q", "-f", "%k %S;"); got != "a 1;b 1;c -1;" {
		t.Fatalf("%q", got)
	}
	if r := consume(t.Context(), t, n, "orders", 1)[0]; r.ProducerID < 0 {
		t.Fatal("it was not idempotent")
	}
}

// TestKcatOffsets: from the beginning, from the end backwards, from a time, and what offset a time has.
func TestKcatOffsets(t *testing.T) {
	n := brokertest.Start(t)
	lines := func(from, to int) string {
		var s strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&s, "%d\n", i)
		}
		return s.String()
	}
	create(t.Context(), t, n, "orders", 1)
	c := client(t, n, kgo.DefaultProduceTopic("orders"))
	began := time.Now().Truncate(time.Millisecond)
	for half := range 2 { // records a millisecond apart, in two batches
		var recs []*kgo.Record
		for i := range 50 {
			i += 50 * half
			recs = append(recs, &kgo.Record{Value: fmt.Append(nil, i), Timestamp: began.Add(time.Duration(i) * time.Millisecond)})
		}
		if err := c.ProduceSync(t.Context(), recs...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	at := func(i int) string { return fmt.Sprint(began.UnixMilli() + int64(i)) }
	for from, want := range map[string]string{
		"beginning": lines(0, 100), "-10": lines(90, 100), "77": lines(77, 100), "s@" + at(0): lines(0, 100), "s@" + at(30): lines(30, 100),
		"s@" + at(50): lines(50, 100), "s@" + at(99): lines(99, 100),
	} {
		if got := kcat(t, n, nil, "-C", "-t", "orders", "-p", "0", "-o", from, "-e", "-q"); got != want {
			t.Errorf("-o %s: %q", from, got)
		}
	}
	for ts, want := range map[string]int{at(-5): 0, at(0): 0, at(30): 30, at(75): 75, at(1000): -1, "-1": 100, "-2": 0} {
		if got := kcat(t, n, nil, "-Q", "-t", "orders:0:"+ts); got != fmt.Sprintf("orders [0] offset %d\n", want) {
			t.Errorf("-Q of %s: %q, want %d", ts, got, want)
		}
	}
	if got := kcat(t, n, nil, "-L", "-J"); !strings.Contains(got, `"topic":"orders"`) {
		t.Errorf("-L: %s", got)
	}
}

// TestKcatMany: many records in and out, compared byte for byte, across a restart.
func TestKcatMany(t *testing.T) {
	many := number(t, "VARVE_RECORDS", recordsDefault)
	n := brokertest.Start(t, "--segment-bytes=16MiB")
	path := filepath.Join(t.TempDir(), "lines")
	sum, size := writeLines(t, path, many)
	began := time.Now()
	kcat(t, n, nil, "-P", "-t", "many", "-p", "0", "-z", "lz4", "-l", path)
	in := time.Since(began)
	if code := n.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	n.Open(t)
	began = time.Now()
	got := kcat(t, n, nil, "-C", "-t", "many", "-p", "0", "-o", "beginning", "-e", "-q")
	if len(got) != size || sha256.Sum256([]byte(got)) != sum {
		t.Fatalf("%d bytes came back of %d, or others", len(got), size)
	}
	t.Logf("%d records, %d bytes: in %.1f s, out %.1f s, the same", many, size, in.Seconds(), time.Since(began).Seconds())
}

// writeLines writes a file of lines, each another one, and returns its checksum.
func writeLines(t *testing.T, path string, lines int) (sum [32]byte, size int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	var b bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&b, "%d %x %0*d\n", i, rng.Uint64(), rng.IntN(100), 0)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b.Bytes()), b.Len()
}

// TestKcatPassesLostRecords: records that a repair declared lost stop no reader.
func TestKcatPassesLostRecords(t *testing.T) {
	n := brokertest.Start(t)
	for i := range 3 { // a batch each
		kcat(t, n, strings.NewReader(strings.Repeat(fmt.Sprintf("value %d\n", i), 400)), "-P", "-t", "orders", "-p", "0", "-X", "linger.ms=500")
	}
	n.Stop(t)
	files, err := filepath.Glob(filepath.Join(n.Dir, "topics", "orders", "*", "0", "*.seg"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("value 1"))] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := brokertest.Varve(t.Context(), t, "log", "repair", "--dir", filepath.Dir(files[0]), "--apply"); code != 0 {
		t.Fatal(out, errOut)
	}
	n.Open(t)
	got := kcat(t, n, nil, "-C", "-t", "orders", "-o", "beginning", "-e", "-q")
	if strings.Contains(got, "value 1") || strings.Count(got, "value 0") != 400 || strings.Count(got, "value 2") != 400 {
		t.Fatalf("%d and %d records, of all %d lines", strings.Count(got, "value 0"), strings.Count(got, "value 2"), strings.Count(got, "\n"))
	}
	if !strings.Contains(n.Log(), "declared lost") {
		t.Error("the node does not say so")
	}
}
