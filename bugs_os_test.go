package varve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"varve"
	"varve/core/segment"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// In a child of the test binary this variable names the directory that it works on.
const bugsChildEnv = "VARVE_BUGS_DIR"

// child runs one test again in a process of its own, with the directory to work on, and returns the
// command, not started.
func child(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), bugsChildEnv+"="+dir), env...)
	return cmd
}

// inChild runs do in a process of its own.
func inChild(t *testing.T, dir string, do func(t *testing.T, dir string), env ...string) {
	t.Helper()
	if dir := os.Getenv(bugsChildEnv); dir != "" {
		do(t, dir)
		return
	}
	if out, err := child(t, dir, env...).CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("child: %v\n%s", err, out)
	}
}

// quickFS is a directory whose syncs do nothing, for tests that make many files.
type quickFS struct{ disk.FS }

type quickFile struct{ disk.File }

func (quickFS) SyncDir(string) error { return nil }

func (q quickFS) Open(name string, mode disk.Mode) (disk.File, error) {
	f, err := q.FS.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return quickFile{f}, nil
}

func (quickFile) Sync() error { return nil }

// openQuick opens a log of small segments without syncs.
func openQuick(t *testing.T, dir string) *varve.Log {
	t.Helper()
	l, err := varve.OpenFS(t.Context(), quickFS{osfs.New(dir)}, dir, varve.Options{Fsync: varve.None, SegmentBytes: 1024, MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestSU4FewDescriptors: a process that may open 64 files reads 1000 segments at random with eight
// readers, appends and rolls. Segments keep no descriptor.
func TestSU4FewDescriptors(t *testing.T) {
	const segments = 1000
	dir := os.Getenv(bugsChildEnv)
	if dir == "" {
		dir = t.TempDir() + "/log"
		l := openQuick(t, dir)
		for range segments {
			if _, err := l.Append(t.Context(), varve.Record{Value: make([]byte, 500)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	inChild(t, dir, func(t *testing.T, dir string) {
		limit := unix.Rlimit{Cur: 64, Max: 64}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		l := openQuick(t, dir)
		if s := l.Stats(); s.SealedSegments < segments {
			t.Fatalf("%d segments", s.SealedSegments)
		}
		var readers [8]*varve.Reader
		for i := range readers {
			readers[i] = l.NewReader(varve.Position{}, varve.ReadOptions{})
		}
		rng := rand.New(rand.NewPCG(4, 4))
		for n := range 2000 {
			r, o := readers[n%len(readers)], rng.Int64N(segments)
			r.Seek(varve.Position{Offset: o})
			if b, ok, err := r.Poll(); !ok || err != nil || b.Span.First != o {
				t.Fatalf("offset %d: %v, %v, %v", o, b.Span, ok, err)
			}
			if n%20 == 0 { // one more segment
				if _, err := l.Append(t.Context(), varve.Record{Value: make([]byte, 500)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// bigLog writes the files of a log of many bytes, nearly all of them holes: batches of 16 MiB of zeros,
// sixteen a segment, every segment but the last with a footer.
func bigLog(t *testing.T, dir string, segments int) (records int64) {
	t.Helper()
	l := open(t, dir, varve.Options{})
	mustAppend(t, l, 0)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	slot, err := os.ReadFile(dir + "/super.0")
	if err != nil {
		t.Fatal(err)
	}
	var super segment.Superblock
	if err := segment.ReadSuper(slot, &super); err != nil {
		t.Fatal(err)
	}
	const payloadBytes, perSegment = 16<<20 - 512, 16
	payload := make([]byte, payloadBytes)
	base := segment.Offset(1)
	i := segment.Identity{
		PayloadBytes: payloadBytes, Kind: segment.KindKafka, Records: 1, Epoch: 1, ProducerID: -1, ProducerEpoch: -1, Sequence: -1,
		PayloadCRC: segment.PayloadCRC(payload),
	}
	for n := range segments {
		id := segment.MakeID(1, uint32(n)+2)
		h := segment.Header{Kind: segment.Created, SectorBytes: 512, LogID: super.LogID, ID: id, Epoch: 1, Base: base}
		f, err := os.Create(filepath.Join(dir, segment.Name(base, id)))
		if err != nil {
			t.Fatal(err)
		}
		header := make([]byte, 512)
		chain := segment.PutHeader(header, &h)
		var footer segment.FooterBuilder
		footer.Reset(&h, chain, 4096)
		write := func(b []byte, at int64) {
			if _, err := f.WriteAt(b, at); err != nil {
				t.Fatal(err)
			}
		}
		write(header, 0)
		pos := int64(512)
		for k := range perSegment {
			i.Base = base
			p := segment.Placement{ID: id, Commit: uint64(k) + 1, Chain: chain, Frontier: base}
			chain = segment.PutBatchHeader(header, &p, &i, segment.PlacementSeed(super.LogID, id), segment.IdentitySeed(super.LogID))
			write(header[:segment.BatchHeaderBytes], pos)
			footer.Add(pos, &i, p.Commit, chain)
			pos = (pos + segment.BatchHeaderBytes + payloadBytes + 511) &^ 511
			base++
		}
		if n < segments-1 {
			write(footer.Append(nil), footer.Pos())
		} else if err := f.Truncate(pos); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	super.Clean, super.Frontier = false, base
	for slot := range 2 {
		super.Sequence++
		b, err := segment.AppendSuper(nil, &super)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(fmt.Sprintf("%s/super.%d", dir, slot), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// TestSU8OpenOf20GiBWithLittleMemory: 20 GiB in 80 segments, the last of them without a footer, so that
// it is scanned whole, and a limit of 256 MiB. What the process ever held is far below.
func TestSU8OpenOf20GiBWithLittleMemory(t *testing.T) {
	const segments = 80
	dir := os.Getenv(bugsChildEnv)
	if dir == "" {
		dir = t.TempDir() + "/log"
		bigLog(t, dir, segments)
	}
	inChild(t, dir, func(t *testing.T, dir string) {
		x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
		if err != nil || x.End != 1+16*segments || x.Refused != nil {
			t.Fatalf("%v: %+v", err, x)
		}
		l := open(t, dir, varve.Options{})
		if s := l.Stats(); s.Committed != 1+16*segments || s.SegmentBytes < 20<<30-1<<29 {
			t.Fatalf("%+v", s)
		}
		r := l.NewReader(varve.Position{}, varve.ReadOptions{})
		defer r.Close()
		for o := int64(5); o < 16*segments; o += 300 {
			r.Seek(varve.Position{Offset: o})
			if b, ok, err := r.Poll(); !ok || err != nil || b.Span.First != o || len(b.Payload) < 15<<20 {
				t.Fatalf("offset %d: %v, %v", o, ok, err)
			}
		}
		if peak := peakMemory(t); peak > 160<<20 {
			t.Errorf("the process held %d MiB", peak>>20)
		}
	}, "GOMEMLIMIT=256MiB")
}

// peakMemory returns the most memory that the process ever had.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if w := strings.Fields(lines.Text()); len(w) == 3 && w[0] == "VmHWM:" {
			n, err := strconv.ParseInt(w[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmHWM in /proc/self/status")
	return 0
}

// TestCC1SecondOwner: the directory is open, in this process and in another one. The second open fails
// at once, says who has it, and touches nothing.
func TestCC1SecondOwner(t *testing.T) {
	if dir := os.Getenv(bugsChildEnv); dir != "" {
		l := open(t, dir, varve.Options{NoPreallocate: true})
		mustAppend(t, l, 0)
		fmt.Println("open")
		time.Sleep(time.Minute) // until it is killed
		return
	}
	for _, other := range []bool{false, true} {
		dir := t.TempDir() + "/log"
		owner := os.Getpid()
		if other {
			owner = startOwner(t, dir)
		} else {
			l := open(t, dir, varve.Options{NoPreallocate: true})
			mustAppend(t, l, 0)
		}
		before := fingerprint(t, dir)
		for last := ""; last != before; { // until its owner has saved what it owed
			time.Sleep(60 * time.Millisecond)
			last, before = before, fingerprint(t, dir)
		}
		began := time.Now()
		_, err := varve.Open(t.Context(), dir, varve.Options{})
		if !errors.Is(err, varve.ErrInUse) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", owner)) {
			t.Errorf("other process %v: %v, want one that names process %d", other, err, owner)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if after := fingerprint(t, dir); after != before {
			t.Errorf("the directory was touched:\n%s\n%s", before, after)
		}
	}
}

// startOwner starts a process that opens a directory, and returns its id once it has.
func startOwner(t *testing.T, dir string) int {
	t.Helper()
	cmd := child(t, dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "open" {
			return cmd.Process.Pid
		}
	}
	t.Fatal("the other process did not open the directory")
	return 0
}

// fingerprint is names, sizes, times and contents of a directory.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range strings.Fields(names(t, dir)) {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %d %v %x\n", name, st.Size(), st.ModTime(), segment.PayloadCRC(content))
	}
	return b.String()
}

// TestCC2LockFileLeftBehind: a process that had the log is killed with SIGKILL; its lock file is there, and
// may hold anything. The next open takes the lock: the kernel gave it back, and the file says nothing.
func TestCC2LockFileLeftBehind(t *testing.T) {
	if dir := os.Getenv(bugsChildEnv); dir != "" {
		l := open(t, dir, varve.Options{NoPreallocate: true})
		mustAppend(t, l, 0)
		fmt.Println("open")
		time.Sleep(time.Minute)
		return
	}
	dir := t.TempDir() + "/log"
	pid := startOwner(t, dir)
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/lock", []byte("12345\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) { // the kill takes a moment
		l, err := varve.Open(t.Context(), dir, varve.Options{MinFreeBytes: -1})
		if err == nil {
			if n := readAll(t, l, 0); n != 1 {
				t.Errorf("%d records", n)
			}
			if err := l.Close(context.Background()); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, varve.ErrInUse) || time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
	}
}
