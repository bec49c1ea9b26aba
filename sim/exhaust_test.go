package sim

import (
	"strings"
	"testing"
)

// met is a Seen without limits.
type met [3]map[uint64]bool

func newMet() *met { return &met{1: {}, 2: {}} }

func (m *met) New(crashes int, state uint64) bool {
	if m[crashes][state] {
		return false
	}
	m[crashes][state] = true
	return true
}

func (m *met) Stop() bool { return false }

// One operation, all crashes: nothing is found.
func TestExhaustOne(t *testing.T) {
	seen := newMet()
	x := NewExplorer(seen)
	scope := Scope{1}
	for i := range scope.Len() {
		c := scope.Case(i)
		if f := x.Explore(c); f != nil {
			var text strings.Builder
			again, ok := NewExplorer(newMet()).Replay(f.Case, &text)
			t.Fatalf("%s: %s: %s; again %v %v\n%s", f.Case.String(), f.Check, f.Text, again, ok, text.String())
		}
		t.Logf("%s: %+v, %d, %d", c.String(), x.Counts, len(seen[1]), len(seen[2]))
	}
}
