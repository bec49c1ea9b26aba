package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"varve/sim"
)

// field returns what a line of the output says.
func field(t *testing.T, out, name string) string {
	t.Helper()
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			return strings.Join(words[1:], " ")
		}
	}
	t.Fatalf("no line %q in\n%s", name, out)
	return ""
}

// A replay is the very run that `run` makes, with a timeline or without, from a seed or a file.
func TestReplay(t *testing.T) {
	w := sim.NewWorld()
	var s sim.Schedule
	for seed := range uint64(5) { // the world is used by then
		sim.Expand(&s, seed, 40)
		w.Run(&s)
	}
	sim.Expand(&s, 6, 40)
	r := w.Run(&s)
	wantCode := exitOK
	if r.Violation != "" {
		wantCode = exitFailed
	}
	want := fmt.Sprintf("%016x", r.Hash)
	file := filepath.Join(t.TempDir(), "kept.schedule")
	for _, args := range []string{"6 --ops 40 --save " + file, "6 --ops 40 -v --profile disk", file, file + " -v"} {
		code, out, errOut := program(t, newWorld, "replay "+args)
		if code != wantCode || field(t, out, "hash") != want || field(t, out, "seed") != "6" {
			t.Errorf("%s: exit %d, want hash %s\n%s%s", args, code, want, out, errOut)
		}
		if timeline := strings.Contains(out, " us  life "); timeline != strings.Contains(args, "-v") {
			t.Errorf("%s: timeline %t\n%s", args, timeline, out)
		}
		field(t, out, "outcome")
	}
	if code, out, _ := program(t, newWorld, "replay 7 --ops 40"); code == exitOK && field(t, out, "hash") == want {
		t.Error("another seed has the same hash")
	}
}

func TestReplayOfBadFiles(t *testing.T) {
	dir := t.TempDir()
	var s sim.Schedule
	sim.Expand(&s, 6, 10)
	good := string(s.AppendText(nil))
	for name, x := range map[string]struct{ text, want string }{
		"empty":   {"", "line 1"},
		"foreign": {"#!/bin/sh\n", "line 1: expected varve schedule 1"},
		"kind":    {good + "999999999999 explode sub=0\n", "expected a kind of event, found \"explode\""},
		"cut":     {good[:40], "expected"},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errOut := program(t, newWorld, "replay "+file)
		if code != exitFailed || !strings.Contains(errOut, file) || !strings.Contains(errOut, x.want) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: exit %d, %s", name, code, errOut)
		}
	}
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, scheduleBytesMax+1); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{long: "found more", filepath.Join(dir, "absent"): "is no seed", dir: "is a directory"} {
		if code, _, errOut := program(t, newWorld, "replay "+file); code != exitFailed || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d, %s", file, code, errOut)
		}
	}
}
