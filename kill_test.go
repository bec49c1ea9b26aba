package varve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"varve"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
	"varve/tiers/s3"
)

// The kill suite: a child process (this test binary again) appends and reports on a pipe what it
// begins and what was acked; the parent kills it with SIGKILL at a moment of its choice, looks at
// the directory, and lets the next child go on in it. VARVE_KILLS sets the kills in each mode.

const (
	childEnv     = "VARVE_KILL_CHILD"
	killsDefault = 10
	killWriters  = 4
)

// life is what the parent tells a child.
type life struct {
	Dir          string
	Mode         varve.FsyncMode
	SegmentBytes int64
	NoPrepare    bool
	Seed         uint64
	Cold         *s3.Options // nil: there is no cold tier
	Warm         string      // address of a Valkey server; "": there is no warm tier

	loaded func() // called when the child begins to append; nil: nothing is
}

func (o *life) options() varve.Options {
	return varve.Options{
		Fsync: o.Mode, FsyncInterval: 2 * time.Millisecond, SegmentBytes: o.SegmentBytes,
		NoPreallocate: o.NoPrepare, MinFreeBytes: -1,
	}
}

// cold adds the cold tier to options, if the life has one.
func (o *life) cold(to *varve.Options) error {
	if o.Cold == nil {
		return nil
	}
	b, err := s3.Open(context.Background(), *o.Cold)
	to.Cold, to.ColdPrefix, to.Create = b, killPrefix, true
	to.LocalRetentionBytes, to.RetentionCheckInterval = 4*o.SegmentBytes, 10*time.Millisecond
	return err
}

// all returns the options of the life with its tiers.
func (o *life) all() (varve.Options, error) {
	to := o.options()
	if err := o.cold(&to); err != nil {
		return to, err
	}
	return to, o.warm(&to)
}

// pipe serialises what the child reports; a line is one write, so that it arrives whole or not.
type pipe struct{ mu sync.Mutex }

func (p *pipe) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n"); err != nil {
		os.Exit(3) // nobody listens any more
	}
}

// reportingFS says when the names of the directory or the length of a file are being changed: that
// is when a segment is created or sealed, or the log is being opened.
type reportingFS struct {
	disk.FS
	pipe *pipe
}

func (f *reportingFS) during(call func() error) error {
	f.pipe.say("meta")
	err := call()
	f.pipe.say("done")
	return err
}

func (f *reportingFS) Open(name string, mode disk.Mode) (file disk.File, err error) {
	if mode == disk.Read {
		return f.FS.Open(name, mode)
	}
	_ = f.during(func() error {
		file, err = f.FS.Open(name, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &reportingFile{file, f}, nil
}

func (f *reportingFS) Rename(from, to string) error {
	return f.during(func() error { return f.FS.Rename(from, to) })
}

func (f *reportingFS) SyncDir(dir string) error {
	return f.during(func() error { return f.FS.SyncDir(dir) })
}

type reportingFile struct {
	disk.File
	fs *reportingFS
}

func (f *reportingFile) Truncate(size int64) error {
	return f.fs.during(func() error { return f.File.Truncate(size) })
}

// killChild appends until it is killed. It only returns if it could not even start.
func killChild(arg string) error {
	var o life
	if err := json.Unmarshal([]byte(arg), &o); err != nil {
		return err
	}
	p := &pipe{}
	p.say("open")
	began := time.Now()
	options, err := o.all()
	if err != nil {
		return err
	}
	l, err := varve.OpenFS(context.Background(), &reportingFS{osfs.New(o.Dir), p}, o.Dir, options)
	if err != nil {
		return err
	}
	p.say("ready %d %d", time.Since(began).Nanoseconds(), l.Stats().Epoch)
	errs := make(chan error)
	for w := range killWriters {
		go func() {
			rng := rand.New(rand.NewPCG(o.Seed, uint64(w)))
			for n := 0; ; n++ {
				recs := make([]varve.Record, 1+rng.IntN(3))
				for i := range recs {
					recs[i].Value = fmt.Appendf(nil, "life %d writer %d append %d record %d %0*d", o.Seed, w, n, i, rng.IntN(200), 0)
				}
				p.say("begin %d %d", w, n)
				s, err := l.Append(context.Background(), recs...)
				for ; errors.Is(err, varve.ErrTierDown); s, err = l.Append(context.Background(), recs...) {
					time.Sleep(time.Millisecond) // the bucket may hold more than the directory
				}
				if o.Warm != "" && errors.Is(err, varve.ErrUnknown) && l.Err() == nil {
					p.say("unknown %d %d", w, n) // it waited too long for the warm tier
					continue
				}
				if err != nil {
					errs <- err
					return
				}
				for i := range recs {
					p.say("ack %d %d", s.First+int64(i), crc32.ChecksumIEEE(recs[i].Value))
				}
				p.say("end %d %d", w, n)
			}
		}()
	}
	return <-errs
}

// killed is what the parent heard before a child's end.
type killed struct {
	acks     map[int64]uint32
	recovery time.Duration // 0: killed while opening
	inFlight bool          // an append had begun and had no outcome
	inMeta   bool          // killed while a segment was created or sealed, or in open
	unknown  int           // appends that ended without an outcome
	resumed  bool          // something was acked after one of them
}

// kill runs one life and kills it: when its metaCall-th metadata call begins if that is above 0,
// else so long after it was ready.
func kill(t *testing.T, o life, metaCall int, after time.Duration) killed {
	t.Helper()
	arg, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+string(arg))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	k := listen(t, out, metaCall, after, o.loaded, func() { _ = cmd.Process.Kill() })
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("child of life %+v was not killed: %v", o, err)
	}
	return k
}

func listen(t *testing.T, out io.Reader, metaCall int, after time.Duration, loaded, fire func()) killed {
	t.Helper()
	k := killed{acks: map[int64]uint32{}}
	flying, meta := map[string]bool{}, 0
	ready := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var kind string
		var a, b int64
		n, _ := fmt.Sscan(lines.Text(), &kind, &a, &b)
		switch {
		case kind == "ready" && n == 3:
			ready, k.recovery = true, time.Duration(a)
			if loaded != nil {
				loaded()
			}
			if metaCall <= 0 {
				time.AfterFunc(after, fire)
			}
		case kind == "meta":
			k.inMeta = true
			if meta++; meta == metaCall {
				fire()
			}
		case kind == "done":
			k.inMeta = false
		case kind == "begin" && n == 3:
			flying[lines.Text()[len("begin "):]] = true
		case kind == "end" && n == 3:
			delete(flying, lines.Text()[len("end "):])
		case kind == "unknown" && n == 3:
			delete(flying, lines.Text()[len("unknown "):])
			k.unknown++
		case kind == "ack" && n == 3:
			k.resumed = k.unknown > 0
			if sum, twice := k.acks[a]; twice {
				t.Fatalf("offset %d acked twice: %08x and %08x", a, sum, b)
			}
			k.acks[a] = uint32(b)
		}
	}
	k.inFlight = len(flying) > 0
	if !ready {
		k.inMeta = true
	}
	return k
}

// verify reads the directory without a writer and compares it with everything ever acked.
func verify(t *testing.T, dir string, acked map[int64]uint32) int64 {
	t.Helper()
	return verifyWith(t, dir, varve.InspectOptions{}, acked)
}

func verifyWith(t *testing.T, dir string, o varve.InspectOptions, acked map[int64]uint32) int64 {
	t.Helper()
	x, err := varve.Inspect(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return compare(t, x.Records(t.Context(), varve.Position{}), acked)
}

// compare reads a log from its beginning to its end, and compares it with everything ever acked.
func compare(t *testing.T, records iter.Seq2[varve.Record, error], acked map[int64]uint32) int64 {
	t.Helper()
	next, found, seen := int64(0), 0, map[string]int64{}
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		if r.Offset != next {
			t.Fatalf("offset %d follows %d", r.Offset, next-1)
		}
		next++
		if first, twice := seen[string(r.Value)]; twice {
			t.Fatalf("offsets %d and %d hold the same record %q", first, r.Offset, r.Value)
		}
		seen[string(r.Value)] = r.Offset
		if sum, ok := acked[r.Offset]; ok {
			found++
			if sum != crc32.ChecksumIEEE(r.Value) {
				t.Fatalf("offset %d was acked with another content than %q", r.Offset, r.Value)
			}
		}
	}
	if found != len(acked) {
		t.Fatalf("%d of %d acked records are there; the log ends at %d", found, len(acked), next)
	}
	return next
}

// killCount is how many kills there are.
func killCount(t *testing.T) int {
	t.Helper()
	s := os.Getenv("VARVE_KILLS")
	if s == "" {
		return killsDefault
	}
	kills, err := strconv.Atoi(s)
	if err != nil || kills < 1 {
		t.Fatalf("VARVE_KILLS=%q: want a number above 0", s)
	}
	return kills
}

func TestKill(t *testing.T) {
	kills := killCount(t)
	for _, mode := range []varve.FsyncMode{varve.OnCommit, varve.Periodic, varve.None} {
		t.Run(mode.String(), func(t *testing.T) { killMode(t, mode, kills) })
	}
}

func killMode(t *testing.T, mode varve.FsyncMode, kills int) {
	dir := t.TempDir() + "/log"
	acked := map[int64]uint32{}
	rng := rand.New(rand.NewPCG(uint64(mode), 1))
	var recoveries []time.Duration
	inMeta, inFlight, end := 0, 0, int64(0)
	for n := 1; inFlight < kills; n++ {
		if n > 5*kills+20 {
			t.Fatalf("only %d of %d kills met an append in flight", inFlight, n)
		}
		o := life{
			Dir: dir, Mode: mode, Seed: uint64(n), NoPrepare: rng.IntN(2) == 0,
			SegmentBytes: []int64{2 << 10, 8 << 10, 256 << 10}[rng.IntN(3)],
		}
		metaCall := 0
		if rng.IntN(3) == 0 {
			metaCall = 1 + rng.IntN(40)
			o.SegmentBytes = 2 << 10
		}
		k := kill(t, o, metaCall, time.Duration(rng.IntN(20_000))*time.Microsecond)
		for offset, sum := range k.acks {
			if old, twice := acked[offset]; twice {
				t.Fatalf("life %d: offset %d acked again: %08x and %08x", n, offset, old, sum)
			}
			acked[offset] = sum
		}
		if k.inFlight {
			inFlight++
		}
		if k.inMeta {
			inMeta++
		}
		if k.recovery > 0 {
			recoveries = append(recoveries, k.recovery)
		}
		end = verify(t, dir, acked)
		if n%10 == 0 { // a life that ends well, in this process
			l := open(t, dir, varve.Options{Fsync: mode})
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if after := verify(t, dir, acked); after != end {
				t.Fatalf("recovery kept %d records of %d", after, end)
			}
		}
	}
	slices.Sort(recoveries)
	t.Logf("%v: %d kills with an append in flight, %d inside roll, seal or open; %d records acked, %d in the log, none lost; "+
		"recovery p50 %v, max %v", mode, inFlight, inMeta, len(acked), end, recoveries[len(recoveries)/2], recoveries[len(recoveries)-1])
	if kills >= 200 && inMeta < 20 {
		t.Fatalf("only %d kills inside roll, seal or open", inMeta)
	}
}
