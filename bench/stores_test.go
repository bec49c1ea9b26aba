package main

import (
	"errors"
	"sync"
	"testing"
)

// TestStores writes a few batches from several goroutines through every contender and reads them
// back after opening again.
func TestStores(t *testing.T) {
	for _, c := range append(contenders(true), served...) {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir() + "/log"
			s, err := c.open(dir, false)
			if err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			for w := range 4 {
				group.Go(func() {
					for range 10 {
						if err := s.append(records(w, 5, 16)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if err := readBack(c, dir, 200); err != nil {
				t.Error(err)
			}
			if err := readBack(c, dir, 201); err == nil {
				t.Error("a missing record went unnoticed")
			}
		})
	}
}

// failing is a store whose appends fail.
type failing struct{ store }

var errFailing = errors.New("failing")

func (failing) append([][]byte) error { return errFailing }
func (failing) close() error          { return nil }

func TestGroupFails(t *testing.T) {
	g := newGroup(failing{})
	if err := g.append(records(1, 1, 16)); !errors.Is(err, errFailing) {
		t.Errorf("append = %v", err)
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
	if g.commits() != 1 {
		t.Errorf("%d commits, want 1", g.commits())
	}
}
