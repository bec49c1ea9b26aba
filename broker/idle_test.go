package broker

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"varve"
)

// TestIdlePartitions counts what an idle partition costs.
func TestIdlePartitions(t *testing.T) {
	const count = 200
	ctx := context.Background()
	dir := t.TempDir()
	b, err := Open(ctx, dir, Options{Log: varve.Options{MinFreeBytes: -1}})
	must(t, err)
	defer func() { must(t, b.Close(ctx)) }()
	before := measure(t)
	began := time.Now()
	x, err := b.Create(ctx, TopicSpec{Name: "idle", Partitions: count})
	must(t, err)
	t.Logf("made %d partitions in %v", count, time.Since(began))
	opened := measure(t)
	t.Logf("each, never written: %+v", opened.minus(before, count))
	for i := range int32(count) {
		p, err := x.Partition(i)
		must(t, err)
		_, err = p.Log().Append(ctx, varve.Record{Value: make([]byte, 1000)})
		must(t, err)
	}
	time.Sleep(500 * time.Millisecond)
	written := measure(t)
	each := written.minus(before, count)
	t.Logf("each, written and idle: %+v", each)
	if each.goroutines != 4 || each.files != 4 || each.heap+each.stacks > idleBytesMax {
		t.Errorf("an idle partition costs %+v: want 4 goroutines, 4 files, at most %d bytes", each, idleBytesMax)
	}
	if disk := onDisk(t, dir) / count; disk > idleDiskMax {
		t.Errorf("an idle partition with one record of 1000 bytes has %d bytes on disk, want at most %d", disk, idleDiskMax)
	}
}

// onDisk counts what the files of a directory take.
func onDisk(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	}))
	return bytes
}

// idleDiskMax is zeros ahead of the tail, superblocks and directories.
const idleDiskMax = 160 << 10

// idleBytesMax bounds the memory of an idle partition; the goal of a node is 256 KiB.
const idleBytesMax = 80 << 10

type cost struct{ heap, stacks, goroutines, files int64 }

func (c cost) minus(x cost, n int64) cost {
	return cost{(c.heap - x.heap) / n, (c.stacks - x.stacks) / n, (c.goroutines - x.goroutines) / n, (c.files - x.files) / n}
}

func measure(t *testing.T) cost {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return cost{int64(m.HeapAlloc), int64(m.StackInuse), int64(runtime.NumGoroutine()), int64(len(files))}
}
