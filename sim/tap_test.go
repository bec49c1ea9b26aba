package sim

import (
	"bytes"
	"strings"
	"testing"

	"varve/faultfs"
	"varve/model"
)

// tapped keeps what a tap gets.
type tapped struct {
	bytes.Buffer
	runs    int
	moments []Moment
	faults  faultfs.FaultSet
	states  []faultfs.FileState
	calls   int
	differ  int // moments at which the device missed something
}

func (t *tapped) Begin() { t.runs++ }

func (t *tapped) End(c *model.Checker) {
	if t.runs == 1 {
		var h model.History
		c.History(&h)
		t.calls = len(h.Calls)
	}
}

func (t *tapped) Moment(m *Moment, d *faultfs.Disk) {
	t.moments = append(t.moments, *m)
	t.states = d.States(t.states[:0])
	for i := range t.states {
		if f := &t.states[i]; !bytes.Equal(f.Kernel, f.Device) {
			t.differ++
			break
		}
	}
}

func (t *tapped) Fault(f faultfs.Fault) { t.faults |= f.Bit() }

// A tap gets each line of the timeline and each fault, and changes nothing.
func TestTap(t *testing.T) {
	w := NewWorld()
	for seed := range uint64(60) {
		var s Schedule
		Expand(&s, seed, 30)
		w.Trace = nil
		want := *w.Run(&s)
		tap := &tapped{}
		w.Trace = tap
		got := w.Run(&s)
		if got.Hash != want.Hash {
			t.Fatalf("seed %d: hash %016x with a tap, %016x without", seed, got.Hash, want.Hash)
		}
		lines := strings.Split(strings.TrimSuffix(tap.String(), "\n"), "\n")
		kinds := map[MomentKind]int{}
		for _, m := range tap.moments {
			if m.Kind == Issued {
				if m.Until <= m.At || m.Track < trackLanes || m.Track >= trackClients {
					t.Fatalf("seed %d: %+v", seed, m)
				}
				continue
			}
			if len(lines) == 0 || !strings.HasSuffix(lines[0], m.Text) {
				t.Fatalf("seed %d: a moment %q beside the lines %q", seed, m.Text, lines)
			}
			lines = lines[1:]
			kinds[m.Kind]++
		}
		if len(lines) != 0 {
			t.Fatalf("seed %d: no moment for %q", seed, lines[0])
		}
		if tap.runs == 1 && (kinds[Started] != want.Lives || kinds[Acked] != want.Acked || kinds[Asked] > len(s.Events)) {
			t.Errorf("seed %d: %d lives, %d acked, %d events; the run had %d, %d, at most %d", seed,
				kinds[Started], kinds[Acked], kinds[Asked], want.Lives, want.Acked, len(s.Events))
		}
		if tap.calls < want.Acked {
			t.Errorf("seed %d: a history of %d calls, %d were acked", seed, tap.calls, want.Acked)
		}
		if tap.differ == 0 {
			t.Errorf("seed %d: kernel and device never differ", seed)
		}
		if tap.runs == 1 && tap.faults != want.Marks.Disk {
			t.Errorf("seed %d: faults %v, want %v", seed, tap.faults, want.Marks.Disk)
		}
	}
}

func TestTrackNames(t *testing.T) {
	seen := map[string]bool{}
	for x := TrackWorld; x < trackSingle+clientsMax; x++ {
		if seen[x.String()] {
			t.Errorf("two tracks are called %q", x)
		}
		seen[x.String()] = true
	}
}
