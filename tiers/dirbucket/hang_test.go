package dirbucket

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"
)

// TestMountThatHangs: nobody waits longer than its context allows for a file system that does not answer,
// and it is asked once.
func TestMountThatHangs(t *testing.T) {
	dir := t.TempDir()
	b, err := Open(dir, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	answers, asked := make(chan struct{}), 0
	m := NewMount(dir, false)
	open := m.find
	m.find = func() (*Bucket, error) {
		asked++
		<-answers
		return open()
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := m.Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
	close(answers)
	if err := m.Check(t.Context()); err != nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}

	// One that answers after it was closed is closed, too.
	answers = make(chan struct{})
	m = NewMount(dir, false)
	m.find = func() (*Bucket, error) {
		<-answers
		return open()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := m.Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	tried := m.trying
	m.mu.Unlock()
	close(answers)
	<-tried
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bucket != nil || !errors.Is(m.err, fs.ErrClosed) {
		t.Errorf("%v, %v", m.bucket, m.err)
	}
}
