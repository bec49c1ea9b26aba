package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve/broker/brokertest"
	"varve/tiers"
	"varve/tiers/dirbucket"
	"varve/tiers/tiertest"
)

// refused runs serve where it must not start, and wants one line and an exit code.
func refused(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, said, got := brokertest.Varve(ctx, t, append([]string{"serve"}, args...)...)
	if got != code || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
		t.Errorf("serve %s: exit code %d, %q, want %d, %q", strings.Join(args, " "), got, said, code, want)
	}
}

// TestServeRefuses: what cannot be served is said in one line, and nothing is changed.
func TestServeRefuses(t *testing.T) {
	n := brokertest.Start(t)
	other := t.TempDir()
	refused(t, 1, "listen: another process has "+n.Addr, "--dir", other+"/new", "--listen", n.Addr, "--admin", "off")
	refused(t, 1, "admin: another process has "+n.Admin, "--dir", other+"/new", "--listen", "127.0.0.1:0", "--admin", n.Admin)
	refused(t, 1, "in use by another process", "--dir", n.Dir, "--listen", "127.0.0.1:0", "--admin", "off")
	refused(t, 2, "listen: expected an address of this host alone", "--dir", other+"/new", "--listen", "0.0.0.0:0")
	if _, err := os.Stat(other + "/new"); !os.IsNotExist(err) {
		t.Errorf("a node that was refused made its directory: %v", err)
	}
	if err := os.WriteFile(other+"/letter.txt", []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, "letter.txt", "--dir", other, "--listen", "127.0.0.1:0", "--admin", "off")
	refused(t, 1, "letter.txt", "--dir", other+"/letter.txt", "--listen", "127.0.0.1:0", "--admin", "off")
	refused(t, 1, "holds no node (found super.", "--dir", filepath.Join(n.Dir, "catalogue"), "--listen", "127.0.0.1:0", "--admin", "off")
	if left, err := os.ReadDir(other); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestServeOfALostDirectory: where the bucket holds topics of a node of this name and the directory holds none, a
// new node does not begin in silence.
func TestServeOfALostDirectory(t *testing.T) {
	root := t.TempDir()
	b, err := dirbucket.Open(root+"/bucket", dirbucket.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), "node/c37bb4878d799f89/orders/1/0/manifest.json", []byte("{}"), tiers.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, "/bucket/node holds topics of node c37bb4878d799f89: is the disk mounted? To begin a new node beside them: --create",
		"--dir", root+"/node", "--cold-url", "file://"+root+"/bucket", "--listen", "127.0.0.1:0", "--admin", "off")
	if _, err := os.Stat(root + "/node"); !os.IsNotExist(err) {
		t.Errorf("a node that was refused made its directory: %v", err)
	}
}

// TestServeOfADamagedCatalogue: it is refused with the place and the way back, and the way leads back.
func TestServeOfADamagedCatalogue(t *testing.T) {
	n := brokertest.Start(t)
	create(t.Context(), t, n, "orders", 2)
	c := client(t, n, kgo.DefaultProduceTopic("orders"))
	if err := c.ProduceSync(t.Context(), &kgo.Record{Value: []byte("1")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if code := n.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	files, err := filepath.Glob(filepath.Join(n.Dir, "catalogue", "*.seg"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[700] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, said, code := brokertest.Varve(t.Context(), t, "serve", "--dir", n.Dir, "--listen", "127.0.0.1:0", "--admin", "off")
	if code != 3 || !strings.Contains(said, n.Dir+"/catalogue: damage in ") || !strings.Contains(said, "varve topic rebuild-catalogue --dir "+n.Dir) {
		t.Fatalf("%d, %s", code, said)
	}
	for _, x := range []struct{ flag, want string }{{"--apply=false", "nothing was written"}, {"--apply", "the node may start"}} {
		out, said, code := brokertest.Varve(t.Context(), t, "topic", "rebuild-catalogue", "--dir", n.Dir, x.flag)
		if code != 0 || !strings.Contains(out, "topic       orders, incarnation 1, 2 partitions") || !strings.Contains(out, x.want) {
			t.Fatalf("%d, %s, %s", code, out, said)
		}
	}
	n.Open(t)
	if got := consume(t.Context(), t, n, "orders", 2); len(got) != 1 || string(got[0].Value) != "1" {
		t.Fatalf("%v", got)
	}
}

// TestServeStops: a stop does not wait for clients that wait, answers what it has taken, and closes
// cleanly.
func TestServeStops(t *testing.T) {
	n := brokertest.Start(t)
	create(t.Context(), t, n, "orders", 4)
	c := client(t, n, kgo.DefaultProduceTopic("orders"))
	if err := c.ProduceSync(t.Context(), &kgo.Record{Value: []byte("1")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	waiting := client(t, n, kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.FetchMaxWait(time.Minute))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go waiting.PollFetches(ctx)
	time.Sleep(200 * time.Millisecond) // until it waits; a stop before that is no less right
	began := time.Now()
	if code := n.Stop(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if !strings.Contains(n.Log(), "closed cleanly") {
		t.Error(n.Log())
	}
	n.Open(t)
	if got := consume(t.Context(), t, n, "orders", 4); len(got) != 1 || string(got[0].Value) != "1" {
		t.Fatalf("%v", got)
	}
}

// get asks the admin address.
func get(t *testing.T, n *brokertest.Node, path string) (code int, body string) {
	t.Helper()
	answer, err := http.Get("http://" + n.Admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

func TestServeAdmin(t *testing.T) {
	n := brokertest.Start(t)
	create(t.Context(), t, n, "orders", 2)
	c := client(t, n, kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := c.ProduceSync(t.Context(), &kgo.Record{Partition: 1, Value: []byte("1")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
		if code, body := get(t, n, path); code != http.StatusOK || body != want+"\n" {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if code, _ := get(t, n, "/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("profiles: %d", code)
	}
	_, body := get(t, n, "/metrics")
	for _, line := range []string{
		"varve_ready 1", "varve_partitions 2", `varve_committed{partition="1",topic="orders"} 1`, `varve_requests_total{request="Produce"} 1`, "varve_produced_bytes_total ",
	} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("no %s in /metrics", line)
		}
	}
}

// TestTopicCommands: varve topic against a running node.
func TestTopicCommands(t *testing.T) {
	n := brokertest.Start(t)
	run := func(code int, args ...string) (out, said string) {
		t.Helper()
		out, said, got := brokertest.Varve(t.Context(), t, append([]string{"topic"}, append(args, "--bootstrap", n.Addr)...)...)
		if got != code {
			t.Fatalf("varve topic %s: exit code %d, %s", strings.Join(args, " "), got, said)
		}
		return out, said
	}
	if out, _ := run(0, "create", "orders", "--partitions", "3", "--config", "retention.ms=86400000"); out != "created orders, 3 partitions\n" {
		t.Error(out)
	}
	if out, _ := run(0, "create", "letters"); out != "created letters, 1 partition\n" {
		t.Error(out)
	}
	if out, _ := run(0, "create", "none", "--validate-only"); out != "" {
		t.Error(out)
	}
	for want, args := range map[string][]string{
		"orders":             {"create", "orders"},
		"../escape":          {"create", "../escape"},
		"retention.ms":       {"create", "bad", "--config", "retention.ms=soon"},
		"no.such.config":     {"create", "bad", "--config", "no.such.config=1"},
		"TOPIC_OR_PARTITION": {"delete", "absent"},
	} {
		if _, said := run(1, args...); !strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: %q", args, said)
		}
	}
	out, _ := run(0, "list")
	if want := "TOPIC    PARTITIONS  RECORDS\nletters  1           0\norders   3           0\n"; out != want {
		t.Errorf("%q", out)
	}
	out, _ = run(0, "describe", "orders", "--json")
	var described []struct {
		Name       string
		ID         string
		Partitions []struct{ Epoch, Start, End int64 }
		Config     []struct{ Key, Value, Source string }
	}
	if err := json.Unmarshal([]byte(out), &described); err != nil || len(described) != 1 || len(described[0].Partitions) != 3 || described[0].Partitions[0].Epoch != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(out, `"key": "retention.ms",`+"\n"+`        "value": "86400000",`+"\n"+`        "source": "topic"`) {
		t.Error(out)
	}
	if out, _ := run(0, "describe", "orders"); !strings.Contains(out, "orders  3 partitions, 0 records, id ") {
		t.Error(out)
	}
	if _, said := run(2, "create", "bad", "--partitions", "0"); !strings.Contains(said, "--partitions 0: want 1 or more") {
		t.Error(said)
	}
	if _, said := run(1, "create", "orders"); said != "varve: topic orders: a topic of that name exists (TOPIC_ALREADY_EXISTS)\n" {
		t.Error(said)
	}
	if out, said := run(1, "describe", "absent", "orders"); !strings.Contains(out, "orders  3 partitions") || !strings.Contains(said, "absent") {
		t.Errorf("%s, %s", out, said)
	}
	missingPartition(t, n, run)
	run(0, "delete", "orders", "letters")
	if out, _ := run(0, "list", "--json"); out != "[]\n" {
		t.Error(out)
	}
	n.Kill()
	if _, said := run(1, "list"); !strings.Contains(said, "is varve serve running there?") || strings.Count(said, "\n") != 1 {
		t.Error(said)
	}
}

// missingPartition loses a directory of orders: what is left is listed and described, with what is not, and served
// whole again once the directory is back.
func missingPartition(t *testing.T, n *brokertest.Node, run func(code int, args ...string) (out, said string)) {
	t.Helper()
	if code := n.Stop(t); code != 0 {
		t.Fatal(code)
	}
	place, saved := filepath.Join(n.Dir, "topics", "orders", "1", "1"), filepath.Join(t.TempDir(), "saved")
	if err := os.Rename(place, saved); err != nil {
		t.Fatal(err)
	}
	n.Open(t)
	if code, body := get(t, n, "/readyz"); code != http.StatusOK || body != "ready; 1 of 4 partitions offline\n" {
		t.Errorf("%d %q", code, body)
	}
	out, said := run(1, "list")
	if want := "TOPIC    PARTITIONS     RECORDS\nletters  1              0\norders   3 (1 offline)  0\n"; out != want || !strings.Contains(said, "1 of 4 partitions are not served: orders/1; varve serve says why") {
		t.Errorf("%q, %q", out, said)
	}
	if out, said := run(1, "describe", "orders"); !strings.Contains(out, "\n  1          -      -      -  offline\n  2          2      0      0\n") || !strings.Contains(out, "86400000") || !strings.Contains(said, "orders/1") {
		t.Errorf("%s, %q", out, said)
	}
	if err := os.Rename(saved, place); err != nil { // the node has made nothing there
		t.Fatal(err)
	}
	for try := 0; ; try++ {
		if _, body := get(t, n, "/readyz"); body == "ready\n" {
			return
		}
		if try == 300 {
			t.Fatal("it is not served again")
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestServeThroughABucket: sealed segments of each partition go to a place of its own in the bucket, and a
// topic that is created anew does not find what the one before left there.
func TestServeThroughABucket(t *testing.T) {
	bucket := t.TempDir() + "/bucket"
	n := brokertest.Start(t, "--cold-url=file://"+bucket, "--create", "--segment-bytes=16KiB", "--local-retention-bytes=16KiB", "--retention-check-interval=50ms")
	create(t.Context(), t, n, "orders", 2)
	c := client(t, n, kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	const records = 400
	for i := range records {
		if err := c.ProduceSync(t.Context(), &kgo.Record{Partition: int32(i % 2), Value: fmt.Appendf(nil, "%0200d", i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(30 * time.Second)
	for { // until files have left the disk
		if _, body := get(t, n, "/metrics"); !strings.Contains(body, `varve_tier_start{partition="0",tier="hot",topic="orders"} 0`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no file leaves the disk")
		}
		time.Sleep(20 * time.Millisecond)
	}
	objects, err := filepath.Glob(bucket + "/node/*/orders/*/*/segments/*.seg")
	if err != nil || len(objects) < 4 {
		t.Fatalf("%v, %v", objects, err)
	}
	n.Kill()
	n.Open(t)
	for i, r := range consume(t.Context(), t, n, "orders", 2) {
		if len(r.Value) != 200 {
			t.Fatalf("record %d: %q", i, r.Value)
		}
	}
	if _, body := get(t, n, "/metrics"); strings.Contains(body, `varve_tier_read_bytes_total{partition="0",tier="cold",topic="orders"} 0`) {
		t.Error("nothing was read from the bucket")
	}
	if _, said, code := brokertest.Varve(t.Context(), t, "topic", "delete", "orders", "--bootstrap", n.Addr); code != 0 {
		t.Fatal(said)
	}
	create(t.Context(), t, n, "orders", 2)
	if got := consume(t.Context(), t, n, "orders", 2); len(got) != 0 {
		t.Fatalf("a new topic holds %d records", len(got))
	}
}

// TestServeWithValkey: with a warm tier each partition has a stream of its own, which goes with its topic.
func TestServeWithValkey(t *testing.T) {
	server := tiertest.StartValkey(t)
	n := brokertest.Start(t, "--warm-endpoints="+server.Addr, "--warm-wait-replicas=0", "--create")
	create(t.Context(), t, n, "orders", 2)
	c := client(t, n, kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range 10 {
		if err := c.ProduceSync(t.Context(), &kgo.Record{Partition: int32(i % 2), Value: []byte("x")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if _, body := get(t, n, "/metrics"); !strings.Contains(body, "\n"+`varve_tier_end{partition="1",tier="warm",topic="orders"} 5`) {
		t.Error("the warm tier does not have the records")
	}
	n.Kill()
	n.Open(t)
	if got := consume(t.Context(), t, n, "orders", 2); len(got) != 10 {
		t.Fatalf("%d records", len(got))
	}
}
