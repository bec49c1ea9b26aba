//go:build !mutant

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"varve/sim"
	"varve/sim/mutants"
)

// Each fault and each checker is needed by some mutant: one that survives without it, which the gate
// proves each time it runs.
func TestEveryFaultAndCheckerIsNeeded(t *testing.T) {
	root, err := mutants.Root()
	if err != nil {
		t.Fatal(err)
	}
	list, err := mutants.Load(os.DirFS(root + "/" + mutants.Dir))
	if err != nil {
		t.Fatal(err)
	}
	proven := map[string]bool{}
	for _, m := range list {
		for _, n := range m.Needs {
			names := append(besideOf(n), n.Name)
			if _, err := sim.ParseWithout(names); err != nil || slices.Contains(besideOf(n), n.Name) {
				t.Errorf("%s needs %s beside %s: %v", m.Name, n.Name, strings.Join(n.Beside, " "), err)
			}
			proven[n.Name] = true
		}
	}
	for _, n := range needList() {
		if !proven[n.Name] {
			t.Errorf("%s: no mutant needs it: write one that survives without it (sim/mutants/doc.go), or remove it", n.Name)
		}
		delete(proven, n.Name)
	}
	for name := range proven {
		t.Errorf("mutants need %s, which is no fault and no checker", name)
	}
}

func TestProveNeeds(t *testing.T) {
	row := func() *mutantRow { return &mutantRow{program: "01-often", Seeds: 40, Detections: 20} }
	m := &mutants.Mutant{Needs: []mutants.Need{{Name: "power"}, {Name: "check.K1"}}}
	c := &mutantsCommand{Seeds: 1_000_000, Detections: 20}
	l := newStubLab()
	r := row()
	if err := c.proveNeeds(t.Context(), r, m, l); err != nil || !slices.Equal(r.Needs, []string{"power", "check.K1"}) {
		t.Errorf("%v, needs %q", err, r.Needs)
	}
	m.Needs = []mutants.Need{{Name: "D7.rot"}}
	if err := c.proveNeeds(t.Context(), row(), m, l); err == nil || err.Error() != "does not need D7.rot: found 20 times in 40 seeds without" {
		t.Errorf("not needed: %v", err)
	}
	m.Needs = []mutants.Need{{Name: "D7.rot", Beside: []string{"power"}}}
	if err := c.proveNeeds(t.Context(), row(), m, l); err == nil || !strings.HasPrefix(err.Error(), "is not found without power: 4 times") {
		t.Errorf("nothing left: %v", err)
	}
}

// What is built for each mutant leaves out most of the module, which takes a third off each build.
func TestMutantProgramNeedsLittle(t *testing.T) {
	list := func(flags ...string) []string {
		out, err := exec.CommandContext(t.Context(), "go", append(append([]string{"list", "-deps"}, flags...), ".")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	all, few := list(), list("-tags=mutant")
	for _, pkg := range []string{"varve", "varve/sim/report", "varve/sim/mutants"} {
		if !slices.Contains(all, pkg) || slices.Contains(few, pkg) {
			t.Errorf("%s: in the program %t, want true, in one of a mutant %t, want false", pkg, slices.Contains(all, pkg), slices.Contains(few, pkg))
		}
	}
}
