package report

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"strings"

	"varve/faultfs"
	"varve/model"
	"varve/sim"
)

// momentsMax bounds what a page shows of a run: the latest. A page of so many is about 10 MiB.
const momentsMax = 20_000

// Story is a run, as data for the page.
type Story struct {
	Result sim.Result `json:"-"`
	Stack  string     `json:"-"` // of a panic

	Skipped int      `json:"skipped"` // moments that came before the first
	Tracks  []string `json:"tracks"`
	Moments []moment `json:"moments"`
	Files   []string `json:"files"` // names of rows
	Faults  []string `json:"-"`     // that struck, in the order of the first time

	// History is what clients called and saw.
	History model.History `json:"-"`
}

// moment is a line of the timeline, and what it changed on the disk.
type moment struct {
	At     int64    `json:"t"`
	Until  int64    `json:"u,omitempty"`
	Life   int      `json:"l"`
	Track  int      `json:"w"`
	Kind   string   `json:"k"`
	Text   string   `json:"x"`
	Faults []string `json:"f,omitempty"`
	Disk   []change `json:"d,omitempty"`
}

// change is how one file differs from the moment before.
type change struct {
	File    int     `json:"f"`
	Gone    bool    `json:"g,omitempty"`
	Live    bool    `json:"l,omitempty"`
	Durable bool    `json:"s,omitempty"`
	Kernel  int     `json:"k"` // size
	Device  int     `json:"d"`
	Sectors [][]int `json:"c,omitempty"` // number, content in the kernel, content on the device, state
}

// Contents of a sector: a number for each that was ever there, in the order of appearance.
const (
	beyond = -1 // the size ends before it
	zeros  = 0
)

// kindWords name kinds in the page, for its style sheet and its tests.
var kindWords = map[sim.MomentKind]string{
	sim.Note: "note", sim.Asked: "asked", sim.Issued: "issued", sim.Stepped: "stepped", sim.CutShort: "cut",
	sim.Failed: "failed", sim.Acked: "acked", sim.Unknown: "unknown", sim.Fetched: "fetched", sim.Phased: "phase",
	sim.Started: "started", sim.Died: "died", sim.Lost: "lost", sim.Healed: "healed", sim.Violated: "violated",
}

// Tell runs a schedule and returns its story. The first time it only counts, so that the second time
// it knows where to begin, and which of the runs to keep if the schedule compares several.
func Tell(w *sim.World, s *sim.Schedule) *Story {
	count := &counter{}
	runTapped(w, s, count, nil)
	story := new(Story)
	t := &teller{story: story, run: count.shown(), tracks: map[sim.Track]int{}, seed: maphash.MakeSeed()}
	t.skip = max(0, count.moments[t.run]-momentsMax)
	story.Skipped = t.skip
	t.track(sim.TrackWorld)
	story.Result = *runTapped(w, s, t, &story.Stack)
	story.sortTracks(t.order)
	return story
}

// runTapped runs a schedule. A panic that the world lets through is a violation.
func runTapped(w *sim.World, s *sim.Schedule, t traceTap, stack *string) (r *sim.Result) {
	w.Trace = t
	defer func() {
		w.Trace = nil
		if p := recover(); p != nil {
			r = &sim.Result{Check: "panic", Violation: fmt.Sprint(p)}
			if stack != nil {
				*stack = string(debug.Stack())
			}
		} else if stack != nil {
			*stack = t.stack()
		}
	}()
	return w.Run(s)
}

// traceTap is a sim.Tap that also takes the text of the timeline, of which only a stack matters: it
// is the one thing that is no moment.
type traceTap interface {
	sim.Tap
	Write(p []byte) (int, error)
	stack() string
}

// stackText keeps the stack of a panic that the world has caught.
type stackText struct{ text bytes.Buffer }

func (x *stackText) Write(p []byte) (int, error) {
	if x.text.Len() > 0 || bytes.HasPrefix(p, []byte("goroutine ")) {
		x.text.Write(p)
	}
	return len(p), nil
}

func (x *stackText) stack() string { return x.text.String() }

// counter counts the moments of each run.
type counter struct {
	stackText
	moments  []int
	violated int // run + 1
}

func (c *counter) Begin() { c.moments = append(c.moments, 0) }

func (c *counter) Moment(m *sim.Moment, _ *faultfs.Disk) {
	c.moments[len(c.moments)-1]++
	if m.Kind == sim.Violated && c.violated == 0 {
		c.violated = len(c.moments)
	}
}

func (c *counter) End(*model.Checker) {}

func (c *counter) Fault(faultfs.Fault) {}

// shown returns the run to show: the violated one, else the first, which is the schedule itself.
func (c *counter) shown() int { return max(0, c.violated-1) }

// teller keeps the moments of one run.
type teller struct {
	stackText
	story  *Story
	run    int // to keep
	now    int // run + 1
	skip   int // moments
	faults []string
	tracks map[sim.Track]int
	order  []sim.Track
	rows   rows
	states []faultfs.FileState
	seed   maphash.Seed
}

func (t *teller) Begin() { t.now++ }

func (t *teller) End(c *model.Checker) {
	if t.now-1 == t.run {
		c.History(&t.story.History)
	}
}

func (t *teller) Fault(f faultfs.Fault) {
	if t.now-1 != t.run {
		return
	}
	name := f.String()
	if n := len(t.faults); n == 0 || t.faults[n-1] != name {
		t.faults = append(t.faults, name)
	}
	for _, known := range t.story.Faults {
		if known == name {
			return
		}
	}
	t.story.Faults = append(t.story.Faults, name)
}

func (t *teller) Moment(m *sim.Moment, d *faultfs.Disk) {
	if t.now-1 != t.run {
		return
	}
	if t.skip > 0 {
		t.skip--
		t.faults = t.faults[:0]
		return
	}
	t.states = d.States(t.states[:0])
	out := moment{
		At: m.At, Until: m.Until, Life: m.Life, Track: t.track(m.Track), Kind: kindWords[m.Kind],
		Text: short(m), Disk: t.rows.changes(t.states, t.story, t.seed),
	}
	if len(t.faults) > 0 {
		out.Faults = append(out.Faults, t.faults...)
		t.faults = t.faults[:0]
	}
	t.story.Moments = append(t.story.Moments, out)
}

// track returns the number of a track in the page.
func (t *teller) track(x sim.Track) int {
	n, ok := t.tracks[x]
	if !ok {
		n = len(t.order)
		t.tracks[x] = n
		t.order = append(t.order, x)
	}
	return n
}

// short is the text of a moment without what the page shows beside it: its time, its lane. The seed
// of an event stands in the schedule.
func short(m *sim.Moment) string {
	text := strings.TrimSpace(m.Text)
	if m.Kind == sim.Asked {
		_, text, _ = strings.Cut(strings.TrimPrefix(text, "> "), " ")
		text, _, _ = strings.Cut(text, " sub=")
	}
	if strings.HasPrefix(text, "[lane ") {
		_, text, _ = strings.Cut(text, "] ")
	}
	return text
}
