//go:build !mutant

package main

import (
	"encoding/json"
	"fmt"
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
		if !proven[n] {
			t.Errorf("%s: no mutant needs it: write one that survives without it (sim/mutants/doc.go), or remove it", n)
		}
		delete(proven, n)
	}
	for name := range proven {
		t.Errorf("mutants need %s, which is no fault and no checker", name)
	}
}

func TestProveNeeds(t *testing.T) {
	c := &mutantsCommand{Seeds: 1_000_000, Detections: 20}
	prove := func(l *stubLab, needs ...mutants.Need) ([]string, error) {
		t.Helper()
		m := &mutants.Mutant{Needs: needs}
		r, tried, err := c.find(t.Context(), m, "01-often", l)
		if err != nil {
			t.Fatal(err)
		}
		row := &mutantRow{program: "01-often"}
		row.take(r, tried)
		err = c.proveNeeds(t.Context(), row, r, m, l)
		var names []string
		for _, n := range row.Needs {
			if n.Found < 4*max(1, n.Without) || n.Seeds == 0 {
				t.Errorf("proof %+v", n)
			}
			names = append(names, n.String())
		}
		return names, err
	}
	l := newStubLab()
	if needs, err := prove(l, mutants.Need{Name: "power"}, mutants.Need{Name: "check.K1"}); err != nil || !slices.Equal(needs, []string{"power", "check.K1"}) {
		t.Errorf("%v, needs %q", err, needs)
	}
	if got := l.trials["01-often"]; len(got) != 1 || !slices.Equal(got[0].compare, []string{"power", "check.K1"}) {
		t.Errorf("trials %+v, want one that compares", got)
	}
	if needs, err := prove(l, mutants.Need{Name: "power", Beside: []string{"D1.sectors"}}); err != nil || !slices.Equal(needs, []string{"power beside D1.sectors"}) {
		t.Errorf("%v, needs %q", err, needs)
	}
	if _, err := prove(l, mutants.Need{Name: "D7.rot"}); err == nil || err.Error() != "does not need D7.rot: found 20 times in 40 seeds without" {
		t.Errorf("not needed: %v", err)
	}
	if _, err := prove(l, mutants.Need{Name: "D7.rot", Beside: []string{"power"}}); err == nil || !strings.HasPrefix(err.Error(), "is not found without power: 4 times") {
		t.Errorf("nothing left: %v", err)
	}
	row := &mutantRow{program: "01-often"}
	if err := c.proveNeeds(t.Context(), row, &reportJSON{Violations: 1}, &mutants.Mutant{Needs: []mutants.Need{{Name: "power"}}}, l); err == nil || !strings.Contains(err.Error(), "ends its process") {
		t.Errorf("crash: %v", err)
	}
}

// The table has a line for each proof, in the order of the faults and the checkers.
func TestNeedsTable(t *testing.T) {
	var b strings.Builder
	needsTable(&b, []*mutantRow{
		{Name: "01", Needs: []needProof{{Name: "check.K7", Beside: "checkers", Found: 20, Seeds: 1004}, {Name: "check.K1", Found: 12, Seeds: 30, Without: 1}}},
		{Name: "02", Needs: []needProof{{Name: "power", Beside: "check.K6", Found: 20, Seeds: 40}}},
	})
	want := "| power | 02 | K6 | 20 in 40 | 0 |\n| K1 | 01 |  | 12 in 30 | 1 |\n| K7 | 01 | checkers | 20 in 1,004 | 0 |\n"
	if got := b.String(); !strings.HasSuffix(got, "|---|---|---|---|---|\n"+want) {
		t.Errorf("table\n%s\nwant at its end\n%s", got, want)
	}
}

// badWorld has power losses that violate a property, in some seeds.
type badWorld struct{ *sim.World }

func (w *badWorld) Run(s *sim.Schedule) *sim.Result {
	r := w.World.Run(s)
	if r.Check == "" && r.Marks.Sim>>sim.MarkPower&1 != 0 && r.Acked%5 == 0 {
		r.Check, r.Violation = "K9", "planted"
	}
	return r
}

// The comparison of a run counts what runs of those seeds with the thing left out count, whatever the number
// of workers: also of a program with a bug.
func TestCompare(t *testing.T) {
	run := func(args string) reportJSON {
		t.Helper()
		_, out, errOut := program(t, func() simulator { return &badWorld{sim.NewWorld()} }, "run --json --all --ops 20 "+args)
		var r reportJSON
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errOut)
		}
		return r
	}
	names := []string{"power", "D7.rot", "D1.sectors", "check.K9"}
	for _, workers := range []string{"1", "3"} {
		with := run("--seeds 3000 --detections 12 --workers " + workers + " --compare " + strings.Join(names, ","))
		if with.Violations != 12 || len(with.Compared) != len(names) {
			t.Fatalf("%s workers: %+v", workers, with)
		}
		for _, name := range names {
			left := run(fmt.Sprintf("--seeds %d --workers 1 --without %s", with.Seeds, name))
			if left.Violations != with.Compared[name] {
				t.Errorf("%s workers, without %s: %d, want %d", workers, name, with.Compared[name], left.Violations)
			}
		}
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
