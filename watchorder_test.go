package varve_test

import (
	"runtime"
	"testing"

	"varve"
)

// TestWatchersRunBeforeAcks: of what a commit wakes, a processor that is alone runs a reader that watches before
// whoever waits for the ack, which is woken first; see tell.
func TestWatchersRunBeforeAcks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l, err := varve.Open(t.Context(), t.TempDir(), varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	told, order := make(chan struct{}, 1), make(chan string, 2)
	l.Watch(told)
	seen := l.Committed() // before anything is appended
	go func() {
		for range told {
			if now := l.Committed(); now > seen { // it may be something else that moved
				seen = now
				order <- "reader"
			}
		}
	}()
	const commits = 50
	readersFirst := 0
	for range commits {
		p, err := l.AppendAsync(varve.Record{Value: []byte("v")})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-p.Done()
			order <- "ack"
		}()
		if <-order == "reader" {
			readersFirst++
		}
		<-order
	}
	// Another program may take the processor at any moment; the race detector runs goroutines in any order.
	if readersFirst < commits/2 && !raceEnabled {
		t.Errorf("the reader was first after %d of %d commits", readersFirst, commits)
	}
	l.Unwatch(told)
	close(told)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
