package osfs

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Whoever gives a new directory up removes the lock file that it made, while it holds it. One who
// has opened that file already must not take its lock for the lock of the directory.
func TestLockOfARemovedFileIsNoLock(t *testing.T) {
	f := New(t.TempDir())
	var holders, taken atomic.Int32
	var all sync.WaitGroup
	until := time.Now().Add(300 * time.Millisecond)
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for time.Now().Before(until) {
				lock, err := f.Lock("lock")
				if err != nil {
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				taken.Add(1)
				time.Sleep(10 * time.Microsecond)
				holders.Add(-1) // the last thing that it does in the directory is to remove the file
				_ = f.Remove("lock")
				_ = lock.Close()
			}
		}()
	}
	all.Wait()
	if taken.Load() == 0 {
		t.Fatal("nobody got the lock")
	}
}
