package fuzz

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"varve/sim"
)

// FuzzScheduleText: what Parse accepts, AppendText writes in a form that Parse reads as the same, and
// writes again in the same way; what it refuses, it refuses by line. The memory of either is bounded
// by the text.
func FuzzScheduleText(f *testing.F) {
	var s sim.Schedule
	for seed := range uint64(30) {
		sim.Expand(&s, seed, 8)
		f.Add(s.AppendText(nil))
	}
	kept, err := filepath.Glob("../sim/testdata/schedules/*.schedule")
	if err != nil || len(kept) == 0 {
		f.Fatalf("no kept schedules: %v", err)
	}
	for _, name := range kept {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	eachForeign(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, text []byte) {
		var s *sim.Schedule
		var err error
		if n := allocated(func() { s, err = sim.Parse(text) }); n > slack+64*uint64(len(text)) {
			t.Fatalf("%d bytes allocated for %d bytes of text", n, len(text))
		}
		if err != nil {
			var where *sim.TextError
			if !errors.As(err, &where) || where.Line < 1 || where.Line > 1+bytes.Count(text, []byte("\n")) {
				t.Fatalf("refused without a line: %v", err)
			}
			return
		}
		printed := s.AppendText(nil)
		again, err := sim.Parse(printed)
		if err != nil {
			t.Fatalf("%v in\n%s", err, printed)
		}
		if again.Header != s.Header || !slices.Equal(again.Events, s.Events) {
			t.Fatalf("the text form lost something:\n%s\n%s", printed, again.AppendText(nil))
		}
		if twice := again.AppendText(nil); !bytes.Equal(twice, printed) {
			t.Fatalf("printed differently the second time:\n%s\n%s", printed, twice)
		}
	})
}

// FuzzSchedule: any bytes are a schedule with a text form, and the log survives it: every checker of
// the simulator judges the run, in a used world and in a fresh one.
func FuzzSchedule(f *testing.F) {
	var s sim.Schedule
	for n := range byte(40) {
		f.Add(script(n))
	}
	eachForeign(f, func(b []byte) { f.Add(b) })
	used := sim.NewWorld()
	f.Fuzz(func(t *testing.T, b []byte) {
		sim.FromBytes(&s, b)
		text := s.AppendText(nil)
		parsed, err := sim.Parse(text)
		if err != nil {
			t.Fatalf("no valid schedule: %v\n%s", err, text)
		}
		if parsed.Header != s.Header || !slices.Equal(parsed.Events, s.Events) {
			t.Fatalf("the text form lost something:\n%s", text)
		}
		r := used.Run(&s)
		if r.Violation != "" {
			t.Fatalf("%s\n%s", r.Violation, text)
		}
		if len(b) > 0 && b[0]&15 == 0 {
			if fresh := sim.NewWorld().Run(parsed); fresh.Hash != r.Hash {
				t.Fatalf("hash %x in a used world, %x in a fresh one\n%s", r.Hash, fresh.Hash, text)
			}
		}
	})
}

// script is a seed of FuzzSchedule: a header and events of many kinds.
func script(n byte) []byte {
	b := []byte{n, n * 3, 7, 0, 0, 0, 0, 1}
	state := uint32(n) + 1
	next := func() byte {
		state = state*1664525 + 1013904223
		return byte(state >> 24)
	}
	for range 5 + 2*int(n) {
		kind := next()
		if next() < 150 {
			kind = 0 // append
		}
		b = append(b, kind, next()&0x7f, next(), next())
		for range 4 {
			b = append(b, next(), 0)
		}
	}
	return b
}
