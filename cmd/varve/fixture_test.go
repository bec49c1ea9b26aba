package main

import (
	"context"
	"os"
	"testing"

	"varve"
)

// killed makes a log as kill -9 leaves it: a copy of a running one, with generated records that were
// acked one by one. Nothing proves the last one: the writer was not idle long enough to say so.
func killed(t *testing.T, n int) (dir string) {
	t.Helper()
	for range 50 {
		dir := copyOfRunning(t, n)
		x, err := varve.Inspect(t.Context(), dir, varve.InspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if x.Proven == int64(n-1) && x.End == int64(n) {
			return dir
		}
	}
	t.Fatal("this machine is too slow for a copy within 10 ms")
	return ""
}

func copyOfRunning(t *testing.T, n int) (dir string) {
	t.Helper()
	running := t.TempDir() + "/log"
	dir = t.TempDir()
	l, err := varve.Open(t.Context(), running, varve.Options{MinFreeBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	for i := range n {
		v := make([]byte, 200)
		generate(v, uint64(i))
		if _, err := l.Append(t.Context(), varve.Record{Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, os.DirFS(running)); err != nil {
		t.Fatal(err)
	}
	return dir
}
