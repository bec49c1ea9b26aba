package kafka_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"varve"
	"varve/broker/kafka"
)

// damage overwrites bytes of a partition's first segment.
func (n *node) damage(topic string, pos int64) {
	n.t.Helper()
	files, err := filepath.Glob(filepath.Join(n.dir, "topics", topic, "1", "0", "*.seg"))
	if err != nil || len(files) == 0 {
		n.t.Fatal(files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("damage"), pos)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// Records that a repair declared lost stop no client: it gets all others, a search by time passes over them, and log
// and metrics say so.
func TestLostRecordsStopNobody(t *testing.T) {
	lines := &logged{}
	logs := varve.Options{MinFreeBytes: -1, NoPreallocate: true, VerifyAllOnOpen: true}
	n := startLogs(t, t.TempDir(), kafka.Options{}, logs)
	n.topic("t", 1)
	r := n.raw()
	const batches, each = 5, 100
	for i := range int64(batches) {
		times := make([]int64, each)
		for j := range times {
			times[j] = 1000*(i+1) + int64(j)
		}
		if p := r.produce("t", oneBatch(0, times...)); p.ErrorCode != 0 || p.BaseOffset != i*each {
			t.Fatalf("%+v", p)
		}
	}
	n.stop()
	partition := filepath.Join(n.dir, "topics", "t", "1", "0")
	x, err := varve.Inspect(t.Context(), partition, varve.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := int64(4096) // behind the file's header, in a batch that is not the last
	n.damage("t", at)
	plan, err := varve.Repair(t.Context(), partition, varve.Options{})
	if err != nil || len(plan.Plan.Damage) != 1 || x.End != batches*each {
		t.Fatalf("%+v %v", plan, err)
	}
	first, end := plan.Plan.Damage[0].Offset, plan.Plan.Damage[0].End
	if first%each != 0 || end != first+each || end >= batches*each {
		t.Fatalf("[%d, %d) is lost", first, end)
	}

	n = startLogs(t, n.dir, kafka.Options{Logger: slog.New(slog.NewTextHandler(lines, nil))}, logs)
	r = n.raw()
	for _, from := range []int64{first, first + 7, end - 1} {
		p := r.fetch("t", from)
		got, _ := bases(t, p.RecordBatches)
		if p.ErrorCode != 0 || len(got) < 2 || got[0] != from || got[1] != end {
			t.Errorf("from %d: code %d, batches at %d", from, p.ErrorCode, got)
		}
	}
	c := n.client(kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got, want []int64
	for o := range int64(batches * each) {
		if o < first || o >= end {
			want = append(want, o)
		}
	}
	for len(got) < len(want) {
		fs := c.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			t.Fatalf("%v, after %d", err, got)
		}
		fs.EachRecord(func(r *kgo.Record) { got = append(got, r.Offset) })
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	for ms, want := range map[int64]int64{0: 0, first/each*1000 + 1000: end, first/each*1000 + 1050: end, first/each*1000 + 2001: end + 1, 99_999: -1} {
		if p := r.offsetAt("t", ms); p.ErrorCode != 0 || p.Offset != want {
			t.Errorf("at time %d: code %d, offset %d, want %d", ms, p.ErrorCode, p.Offset, want)
		}
	}
	if p := r.offsetAt("t", -3); p.ErrorCode != 0 || p.Offset != batches*each-1 {
		t.Errorf("the greatest time: %+v", p)
	}
	if text := lines.String(); strings.Count(text, "declared lost") != 1 || !strings.Contains(text, partition) || strings.Contains(text, "damage") {
		t.Errorf("want one line with the directory, got:\n%s", text)
	}
	if got := n.server.Stats().Lost; got < end-first {
		t.Errorf("%d lost records are counted, want at least %d", got, end-first)
	}
}
