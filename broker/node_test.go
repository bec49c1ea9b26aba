package broker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"varve"
	"varve/core/topics"
	"varve/faultfs"
	"varve/tiers"
	"varve/tiers/dirbucket"
)

var testLog = varve.Options{MinFreeBytes: -1, NoPreallocate: true}

func open(t *testing.T, dir string, o Options) *Broker {
	t.Helper()
	if o.Log.MinFreeBytes == 0 {
		o.Log = testLog
	}
	b, err := Open(context.Background(), dir, o)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close(context.Background())) })
	return b
}

func shut(t *testing.T, b *Broker) {
	t.Helper()
	must(t, b.Close(context.Background()))
}

func create(t *testing.T, b *Broker, name string, n int32) *Topic {
	t.Helper()
	x, err := b.Create(context.Background(), TopicSpec{Name: name, Partitions: n})
	must(t, err)
	return x
}

func appendTo(t *testing.T, x *Topic, n int32, value string) {
	t.Helper()
	p, err := x.Partition(n)
	must(t, err)
	must(t, p.Err())
	_, err = p.Log().Append(context.Background(), varve.Record{Value: []byte(value)})
	must(t, err)
}

// sets is a change to a configuration as it is given.
func sets(config map[string]string) func(map[string]string) {
	return func(own map[string]string) {
		clear(own)
		maps.Copy(own, config)
	}
}

func wants(t *testing.T, err error, is error, text string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) || !strings.Contains(err.Error(), text) {
		t.Fatalf("%v, want %v with %q", err, is, text)
	}
}

// TestOffline: a partition whose directory is damaged or missing is offline and says why, all others are
// served, and nothing is made in its place.
func TestOffline(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, Options{})
	x := create(t, b, "a", 4)
	for i := range int32(4) {
		appendTo(t, x, i, "v")
	}
	shut(t, b)
	home := filepath.Join(dir, "topics", "a", "1")
	for _, name := range []string{"super.0", "super.1"} {
		must(t, os.WriteFile(filepath.Join(home, "1", name), []byte("damaged"), 0o600))
	}
	must(t, os.RemoveAll(filepath.Join(home, "2")))
	must(t, os.RemoveAll(filepath.Join(home, "3")))
	must(t, os.Mkdir(filepath.Join(home, "3"), 0o700))
	b = open(t, dir, Options{})
	x, err := b.Topic("a")
	must(t, err)
	appendTo(t, x, 0, "w")
	for i, why := range map[int32]string{1: "no superblock slot verifies", 2: "missing or empty", 3: "missing or empty"} {
		p, err := x.Partition(i)
		must(t, err)
		wants(t, p.Err(), ErrOffline, why)
		if p.Log() != nil || p.Epoch() != -1 {
			t.Errorf("partition %d has a log, or epoch %d", i, p.Epoch())
		}
	}
	if _, err := os.Lstat(filepath.Join(home, "2")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory is in the place of the missing one: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(home, "3"))
	if err != nil || len(entries) > 0 {
		t.Errorf("in the empty directory: %v, %v", entries, err)
	}
	must(t, b.Delete(context.Background(), "a", 0)) // and it can be deleted
	must(t, leftovers(b, b.tree))
}

// TestForeign: directories that are in use, another's, or belong to another catalogue are refused.
func TestForeign(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	b := open(t, dir, Options{})
	create(t, b, "a", 1)
	_, err := Open(ctx, dir, Options{Log: testLog})
	wants(t, err, varve.ErrInUse, dir)
	shut(t, b)

	must(t, os.Rename(filepath.Join(dir, "catalogue"), filepath.Join(dir, "elsewhere")))
	_, err = Open(ctx, dir, Options{Log: testLog})
	var unknown *topics.UnknownDirError
	if !errors.As(err, &unknown) {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "catalogue")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a catalogue was made: %v", err)
	}
	must(t, os.Rename(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "catalogue")))
	b = open(t, dir, Options{})
	if _, err := b.Topic("a"); err != nil {
		t.Fatal(err)
	}
	shut(t, b)

	other := t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "notes.txt"), nil, 0o600))
	_, err = Open(ctx, other, Options{Log: testLog})
	wants(t, err, nil, "holds no node (found notes.txt)")
	_, err = Open(ctx, "", Options{Log: testLog})
	wants(t, err, nil, "empty")
}

// TestAtOnce: of creations of one name at the same time one wins; deletes and creations in a row never find
// what was there before.
func TestAtOnce(t *testing.T) {
	b := open(t, t.TempDir(), Options{})
	ctx := context.Background()
	for round := range 3 {
		var done sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			done.Go(func() { _, errs[i] = b.Create(ctx, TopicSpec{Name: "a", Partitions: 2}) })
		}
		done.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, ErrTopicExists) {
				t.Fatal(err)
			}
		}
		x, err := b.Topic("a")
		must(t, err)
		if won != 1 || x.Incarnation != uint64(round+1) {
			t.Fatalf("%d won, incarnation %d", won, x.Incarnation)
		}
		appendTo(t, x, 0, "v")
		must(t, b.Delete(ctx, "a", 0))
	}
	x := create(t, b, "a", 1)
	if p, _ := x.Partition(0); p.Log().Committed() != 0 {
		t.Error("a new topic has records")
	}
	must(t, leftovers(b, b.tree))
	wants(t, b.Delete(ctx, "b", 0), ErrUnknownTopic, "")
	wants(t, b.AddPartitions(ctx, "a", 1, false), ErrPartitions, "has 1")
	wants(t, b.AddPartitions(ctx, "a", 5000, true), ErrBudget, "it would have 5000, at most")
	_, err := b.Create(ctx, TopicSpec{Name: "../x"})
	var name *NameError
	if !errors.As(err, &name) {
		t.Fatal(err)
	}
}

// TestConfigure: what a topic sets reaches its logs, is described, and survives; records stay.
func TestConfigure(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	b := open(t, dir, Options{})
	x, err := b.Create(ctx, TopicSpec{Name: "a", Config: map[string]string{"max.message.bytes": "2000"}})
	must(t, err)
	appendTo(t, x, 0, "v")
	p, _ := x.Partition(0)
	big := varve.Record{Value: make([]byte, 3000)}
	_, err = p.Log().Append(ctx, big)
	wants(t, err, varve.ErrTooLarge, "")
	before := p.Epoch()
	must(t, b.Configure(ctx, "a", sets(map[string]string{"max.message.bytes": "4000", "retention.ms": "9223372036854775807"}), false))
	for try := 0; p.Err() != nil || p.Epoch() == before; try++ {
		if try == 20000 {
			t.Fatal("it is not open again: ", p.Err())
		}
		time.Sleep(time.Millisecond)
	}
	_, err = p.Log().Append(ctx, big)
	must(t, err)
	wants(t, b.Configure(ctx, "a", sets(map[string]string{"cleanup.policy": "compact"}), false), nil, "never by key")
	shut(t, b)

	b = open(t, dir, Options{})
	x, err = b.Topic("a")
	must(t, err)
	if p, _ = x.Partition(0); p.Log().Committed() != 2 {
		t.Errorf("%d records", p.Log().Committed())
	}
	found := map[string]ConfigEntry{}
	for _, e := range b.ConfigEntries(x) {
		found[e.Name] = e
	}
	for _, want := range []ConfigEntry{
		{Name: "max.message.bytes", Value: "4000", Default: "16777216", Set: true},
		{Name: "retention.ms", Value: "9223372036854775807", Default: "-1", Set: true},
		{Name: "segment.bytes", Value: "268435456", Default: "268435456"},
		{Name: "local.retention.ms", Value: "-2", Default: "-2"},
		{Name: "cleanup.policy", Value: "delete", Default: "delete", ReadOnly: true},
	} {
		e := found[want.Name]
		if e.Type == 0 || e.Doc == "" {
			t.Errorf("%+v", e)
		}
		e.Type, e.Doc = 0, ""
		if e != want {
			t.Errorf("%+v, want %+v", e, want)
		}
	}
	all := map[string]string{} // what is described may be set
	for _, e := range found {
		all[e.Name] = e.Value
	}
	must(t, b.Configure(ctx, "a", sets(all), true))
}

// TestConfigureAtOnce: of changes of single values at the same time none is lost, and none is carried over to
// another incarnation; a deletion that means one incarnation leaves the next.
func TestConfigureAtOnce(t *testing.T) {
	ctx := t.Context()
	b := open(t, t.TempDir(), Options{})
	x := create(t, b, "a", 1)
	keys := []string{"retention.ms", "retention.bytes", "segment.ms", "segment.bytes", "max.message.bytes", "local.retention.ms"}
	var done sync.WaitGroup
	errs := make([]error, len(keys))
	for i, key := range keys {
		done.Go(func() {
			errs[i] = b.Configure(ctx, "a", func(config map[string]string) { config[key] = "1000000" }, false)
		})
	}
	done.Wait()
	must(t, errors.Join(errs...))
	if got := x.Config(); len(got) != len(keys) {
		t.Errorf("set is %v", got)
	}
	wants(t, b.Configure(ctx, "b", func(map[string]string) {}, false), ErrUnknownTopic, "")
	must(t, b.Delete(ctx, "a", x.Incarnation))
	y := create(t, b, "a", 1)
	wants(t, b.Delete(ctx, "a", x.Incarnation), ErrUnknownTopic, "")
	appendTo(t, y, 0, "v")
	must(t, b.Configure(ctx, "a", func(config map[string]string) { config["retention.ms"] = "5" }, false))
	if got := y.Config(); len(got) != 1 {
		t.Errorf("set is %v", got)
	}
}

// TestLogOptions: how a topic's values become a log's.
func TestLogOptions(t *testing.T) {
	b := &Broker{options: Options{Log: varve.Options{PendingBytes: 1 << 20, LocalRetentionBytes: 5}}}
	config := []topics.Pair{
		{Name: "local.retention.bytes", Value: "-2"},
		{Name: "local.retention.ms", Value: "60000"},
		{Name: "max.message.bytes", Value: "2097152"},
		{Name: "retention.bytes", Value: "-1"},
		{Name: "retention.ms", Value: "86400000"},
		{Name: "segment.bytes", Value: "1048576"},
		{Name: "segment.ms", Value: "9223372036854775807"},
	}
	o := b.logOptions(topics.Dir{}, config)
	if o.RetentionAge != 24*time.Hour || o.RetentionBytes != varve.Unlimited || o.SegmentBytes != 1<<20 ||
		o.SegmentAge != varve.Unlimited || o.MaxBatchBytes != 2<<20 || o.PendingBytes != 2<<20 {
		t.Errorf("%+v", o)
	}
	if o.LocalRetentionAge != 0 || o.LocalRetentionBytes != 0 {
		t.Errorf("local retention without a cold tier would lose records: %+v", o)
	}
	bucket := testBucket(t)
	b.options.Tiers = func(string, uint64, int32) (tiers.Bucket, string, varve.WarmOptions) {
		return bucket, "x/", varve.WarmOptions{}
	}
	if o = b.logOptions(topics.Dir{}, config); o.LocalRetentionAge != time.Minute || o.LocalRetentionBytes != varve.Unlimited {
		t.Errorf("%+v", o)
	}
}

func testBucket(t *testing.T) *dirbucket.Bucket {
	t.Helper()
	bucket, err := dirbucket.Open(t.TempDir(), dirbucket.Options{Create: true})
	must(t, err)
	t.Cleanup(func() { must(t, bucket.Close()) })
	return bucket
}

// TestColdTier: a deleted topic leaves nothing in the bucket, one that is created again finds nothing there,
// and one whose directory is lost comes back from there.
func TestColdTier(t *testing.T) {
	ctx, dir, bucket := context.Background(), t.TempDir(), testBucket(t)
	o := Options{Log: testLog, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return bucket, topics.Dir{Topic: topic, Incarnation: incarnation, Partition: partition}.String() + "/", varve.WarmOptions{}
	}}
	b := open(t, dir, o)
	x := create(t, b, "a", 2)
	for i := range int32(2) {
		appendTo(t, x, i, "v")
		p, _ := x.Partition(i)
		must(t, p.Log().Export(ctx, 1))
	}
	shut(t, b)
	must(t, os.RemoveAll(filepath.Join(dir, "topics", "a", "1", "1")))
	var said lockedBuffer
	o.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b = open(t, dir, o)
	if !strings.Contains(said.String(), "made anew from its tiers") || !strings.Contains(said.String(), "partition=topics/a/1/1 start=0 end=1") {
		t.Errorf("nothing is said: %s", said.String())
	}
	o.Logger = nil
	x, err := b.Topic("a")
	must(t, err)
	p, _ := x.Partition(1)
	must(t, p.Err())
	if p.Log().Committed() != 1 {
		t.Errorf("%d records came back", p.Log().Committed())
	}
	must(t, b.Delete(ctx, "a", 0))
	y := create(t, b, "a", 1)
	if p, _ := y.Partition(0); p.Log().Committed() != 0 {
		t.Error("a new topic has records")
	}
	must(t, leftovers(b, b.tree))
	shut(t, b)
	list, err := bucket.List(ctx, "topics/a/1/", "", 10)
	if err != nil || len(list) > 0 {
		t.Errorf("in the bucket: %v, %v", list, err)
	}
	if list, err = bucket.List(ctx, "topics/a/2/", "", 10); err != nil || len(list) == 0 {
		t.Errorf("of the new one in the bucket: %v, %v", list, err)
	}
}

// TestBudgets: partitions against the limit of open files.
func TestBudgets(t *testing.T) {
	_, err := Open(context.Background(), t.TempDir(), Options{Log: testLog, PartitionsMax: math.MaxInt32})
	wants(t, err, ErrBudget, "raise RLIMIT_NOFILE")
	b := open(t, t.TempDir(), Options{PartitionsMax: 3})
	create(t, b, "a", 2)
	_, err = b.Create(context.Background(), TopicSpec{Name: "b", Partitions: 2})
	wants(t, err, ErrBudget, "it would have 4, at most 3")
	_, err = b.Create(context.Background(), TopicSpec{Name: "b", Partitions: 2, ValidateOnly: true})
	wants(t, err, ErrBudget, "it would have 4, at most 3")
	must(t, b.Delete(context.Background(), "a", 0))
	create(t, b, "b", 3)
}

// TestMend: a partition whose log is poisoned is opened again, and so is the catalogue, with an answer that
// says that nobody knows where nobody does.
func TestMend(t *testing.T) {
	ctx := context.Background()
	d := faultfs.New()
	var mu sync.Mutex
	arm := func(op faultfs.Op, f faultfs.Fault) {
		mu.Lock()
		defer mu.Unlock()
		d.Arm(op, f, 0, ".seg")
	}
	b, err := openTree(ctx, newFaultTree(&mu, d), crashOptions)
	must(t, err)
	x := create(t, b, "a", 1)
	appendTo(t, x, 0, "v")
	p, _ := x.Partition(0)
	epoch := p.Epoch()
	arm(faultfs.OpSync, faultfs.D17Clean)
	_, err = p.Log().Append(ctx, varve.Record{Value: []byte("w")})
	wants(t, err, varve.ErrUnknown, "")
	b.mend()
	for try := 0; p.Err() != nil || p.Epoch() == epoch; try++ {
		if try == 20000 {
			t.Fatal("it is not open again: ", p.Err())
		}
		time.Sleep(time.Millisecond)
	}
	appendTo(t, x, 0, "x")

	arm(faultfs.OpSync, faultfs.D17Clean)
	wants(t, b.Configure(ctx, "a", sets(map[string]string{"retention.ms": "7"}), false), ErrUnknown, "")
	for _, err = b.ProducerID(ctx); errors.Is(err, ErrNotReady); _, err = b.ProducerID(ctx) {
		time.Sleep(time.Millisecond)
	}
	must(t, err)
	create(t, b, "b", 1)
	appendTo(t, x, 0, "y")
	must(t, b.Close(ctx))
}

// strayTree has, when told so, a directory that the catalogue does not know.
type strayTree struct {
	tree
	stray atomic.Bool
}

func (t *strayTree) list(dirs []topics.Dir, others []string) ([]topics.Dir, []string, error) {
	dirs, others, err := t.tree.list(dirs, others)
	if t.stray.Load() {
		dirs = append(dirs, topics.Dir{Topic: "x", Incarnation: 99, Partition: -1})
	}
	return dirs, others, err
}

// TestCatalogueLost: a node whose catalogue is opened again, or cannot be, serves its topics as before, is ready,
// and says in its log and to whoever asks that they cannot be changed, and why.
func TestCatalogueLost(t *testing.T) {
	ctx := t.Context()
	d := faultfs.New()
	var mu sync.Mutex
	var said lockedBuffer
	stray := &strayTree{tree: newFaultTree(&mu, d)}
	o := crashOptions
	o.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := openTree(ctx, stray, o)
	must(t, err)
	x := create(t, b, "a", 1)
	lose := func() {
		t.Helper()
		if ready, _, _ := b.Ready(); !ready || b.Catalogue() != nil {
			t.Fatal(ready, b.Catalogue())
		}
		mu.Lock()
		d.Arm(faultfs.OpSync, faultfs.D17Clean, 0, ".seg")
		mu.Unlock()
		wants(t, b.Configure(ctx, "a", func(c map[string]string) { c["retention.ms"] = "7" }, false), ErrUnknown, "")
	}
	lose()
	for try := 0; b.Catalogue() != nil; try++ {
		if ready, _, _ := b.Ready(); !ready || try == 20000 {
			t.Fatal(ready, b.Catalogue())
		}
		time.Sleep(time.Millisecond)
	}
	if s := said.String(); !strings.Contains(s, "can be changed") {
		t.Errorf("it is not said that all is well again: %s", s)
	}
	must(t, b.Configure(ctx, "a", func(c map[string]string) { clear(c) }, false))
	stray.stray.Store(true)
	lose()
	for try := 0; !strings.Contains(said.String(), "started again"); try++ {
		if try == 20000 {
			t.Fatal(said.String())
		}
		time.Sleep(time.Millisecond)
	}
	if ready, _, _ := b.Ready(); !ready {
		t.Error("it is not ready, and serves")
	}
	wants(t, b.Catalogue(), nil, "is failed: topics: directory topics/x/99 is unknown")
	_, err = b.ProducerID(ctx)
	wants(t, err, ErrNotReady, "topics/x/99")
	appendTo(t, x, 0, "v")
	must(t, b.Close(ctx))
}

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestFullDisk: what finds no space ends in an error that says so, leaves nothing, and works once there is
// space.
func TestFullDisk(t *testing.T) {
	failed := 0
	for more := int64(0); more < 192<<10; more += 4 << 10 {
		failed += fullDisk(t, more)
	}
	if failed < 5 || failed > 45 {
		t.Errorf("%d of 48 creations failed", failed)
	}
}

func fullDisk(t *testing.T, more int64) (failed int) {
	ctx := context.Background()
	d := faultfs.New()
	var mu sync.Mutex
	tree := newFaultTree(&mu, d)
	b, err := openTree(ctx, tree, crashOptions)
	must(t, err)
	mu.Lock()
	d.SetCapacity(d.Used() + more)
	mu.Unlock()
	if _, err := b.Create(ctx, TopicSpec{Name: "b", Partitions: 3}); err != nil {
		if failed = 1; !errors.Is(err, varve.ErrNoSpace) {
			t.Fatalf("with %d bytes: %v", more, err)
		}
	} else {
		must(t, b.Delete(ctx, "b", 0))
	}
	mu.Lock()
	d.SetCapacity(0)
	mu.Unlock()
	for try := 0; ; try++ { // the catalogue looks for space every now and then
		_, err := b.Create(ctx, TopicSpec{Name: "b", Partitions: 3})
		if err == nil {
			break
		}
		if !errors.Is(err, varve.ErrNoSpace) || try == 1000 {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.mend()
	must(t, leftovers(b, tree))
	must(t, b.Close(ctx))
	return failed
}

// TestClosed: a closed node answers so, and closing ends within its context.
func TestClosed(t *testing.T) {
	b := open(t, t.TempDir(), Options{})
	x := create(t, b, "a", 2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Create(ctx, TopicSpec{Name: "b"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_ = b.Close(ctx)
	shut(t, b)
	_, err := b.Create(context.Background(), TopicSpec{Name: "b"})
	wants(t, err, ErrClosed, "")
	_, err = b.ProducerID(context.Background())
	wants(t, err, ErrClosed, "")
	p, _ := x.Partition(0)
	_, err = p.Log().Append(context.Background(), varve.Record{Value: []byte("v")})
	wants(t, err, varve.ErrClosed, "")
	if ready, _, _ := b.Ready(); ready {
		t.Error("it is ready")
	}
}

// TestTiersOfAnother: what another log left in the tiers of a new partition is never touched: not by the
// creation, which fails, not by undoing that, and not by a later open.
func TestTiersOfAnother(t *testing.T) {
	ctx, dir, bucket := context.Background(), t.TempDir(), testBucket(t)
	o := Options{Log: testLog, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return bucket, topics.Dir{Topic: topic, Incarnation: incarnation, Partition: partition}.String() + "/", varve.WarmOptions{}
	}}
	old := open(t, t.TempDir(), o)
	x := create(t, old, "a", 2)
	appendTo(t, x, 1, "v")
	p, _ := x.Partition(1)
	must(t, p.Log().Export(ctx, 1))
	shut(t, old)
	before, err := bucket.List(ctx, "topics/", "", 100)
	must(t, err)
	for range 2 {
		b := open(t, dir, o)
		if len(b.Topics()) == 0 {
			_, err = b.Create(ctx, TopicSpec{Name: "a", Partitions: 2})
			if err != nil {
				wants(t, err, nil, "another log left")
			}
		}
		must(t, leftovers(b, b.tree))
		shut(t, b)
		if after, err := bucket.List(ctx, "topics/a/1/", "", 100); err != nil || len(after) != len(before) {
			t.Fatalf("%v, %v, before %v", after, err, before)
		}
	}
}

// hangingBucket answers nothing before its context ends.
type hangingBucket struct{ tiers.Bucket }

func (hangingBucket) Get(ctx context.Context, _ string, _ int64, _ []byte) (int, tiers.Object, error) {
	<-ctx.Done()
	return 0, tiers.Object{}, ctx.Err()
}

// TestTierHangs: a creation that waits for a tier ends with its caller's context, told as unknown, and does
// not hold up Close; nothing of it is there afterwards.
func TestTierHangs(t *testing.T) {
	dir, bucket := t.TempDir(), testBucket(t)
	var cold tiers.Bucket = hangingBucket{bucket}
	o := Options{Log: testLog, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return cold, topics.Dir{Topic: topic, Incarnation: incarnation, Partition: partition}.String() + "/", varve.WarmOptions{}
	}}
	b, err := Open(context.Background(), dir, o)
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err = b.Create(ctx, TopicSpec{Name: "a"})
	wants(t, err, ErrUnknown, "deadline exceeded")
	_, err = b.ProducerID(context.Background()) // others go on
	must(t, err)
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	must(t, b.Close(ctx))
	cold = bucket
	b = open(t, dir, o)
	if _, err := b.Topic("a"); !errors.Is(err, ErrUnknownTopic) {
		t.Error(err)
	}
	must(t, leftovers(b, b.tree))
	create(t, b, "a", 1)
}

// TestFencedPartitionStays: a partition whose place another node has taken is not taken back, or the two would
// take it from each other again and again, and what one has acked would be void for the other.
func TestFencedPartitionStays(t *testing.T) {
	ctx := t.Context()
	base := t.TempDir()
	first, second := filepath.Join(base, "a"), filepath.Join(base, "b")
	bucket := testBucket(t)
	o := Options{Log: testLog, Tiers: func(topic string, incarnation uint64, partition int32) (tiers.Bucket, string, varve.WarmOptions) {
		return bucket, topics.Dir{Topic: topic, Incarnation: incarnation, Partition: partition}.String() + "/", varve.WarmOptions{}
	}}
	made := open(t, first, o)
	create(t, made, "t", 2)
	shut(t, made)
	must(t, os.CopyFS(second, os.DirFS(first)))
	for _, name := range []string{"super.0", "super.1"} { // so that the topic's partitions are tried again and again
		must(t, os.WriteFile(filepath.Join(first, "topics/t/1/1", name), []byte("damaged"), 0o600))
	}
	a, err := Open(ctx, first, o)
	must(t, err)
	x, err := a.Topic("t")
	must(t, err)
	appendTo(t, x, 0, "A")
	b := open(t, second, o)
	y, err := b.Topic("t")
	must(t, err)
	appendTo(t, y, 0, "B")
	old, err := x.Partition(0)
	must(t, err)
	if err := old.Log().Export(ctx, 1); !errors.Is(err, varve.ErrPoisoned) {
		t.Fatal(err)
	}
	a.mend()
	a.mend()
	must(t, a.Configure(ctx, "t", sets(map[string]string{"retention.ms": "1000000"}), false)) // which opens a topic's logs again
	time.Sleep(300 * time.Millisecond)
	owner, err := y.Partition(0)
	must(t, err)
	if old.Log() != nil || !errors.Is(old.Err(), varve.ErrOwnerFenced) {
		t.Errorf("served: %v, %v", old.Log(), old.Err())
	}
	must(t, owner.Log().Export(ctx, 1))
	shut(t, b)
	if err := a.Close(ctx); !errors.Is(err, varve.ErrOwnerFenced) {
		t.Error(err)
	}
}
