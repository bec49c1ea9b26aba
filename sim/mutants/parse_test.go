package mutants

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

const sample = `what: two acks
 for one append
breaks: K4 K1
needs: D9.lie power beside D7.rot second
ops: 50
profile: cold

== core/a.go
-- old
	x := 1

	y := 2
-- new
	x := 2
-- end
-- old
	z()
-- new
-- end

== tiers/disk/b.go
-- old
}
-- new
	_ = 1
}
-- end
`

func TestParse(t *testing.T) {
	m, err := Parse("14-sample", sample)
	if err != nil {
		t.Fatal(err)
	}
	want := &Mutant{
		Name: "14-sample", What: "two acks for one append", Breaks: []string{"K4", "K1"}, Ops: 50, Profile: Cold,
		Needs: []Need{{"D9.lie", []string{"D7.rot", "second"}}, {"power", []string{"D7.rot", "second"}}},
		Edits: []Edit{
			{"core/a.go", "\tx := 1\n\n\ty := 2\n", "\tx := 2\n"},
			{"core/a.go", "\tz()\n", ""},
			{"tiers/disk/b.go", "}\n", "\t_ = 1\n}\n"},
		},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v\nwant %+v", m, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, x := range []struct{ old, with, want string }{
		{"breaks: K4 K1\n", "", `x.mutant: no line "breaks:"`},
		{"what: two", "why: two", `line 1: expected what, breaks, needs, equivalent, ops or profile, found "why"`},
		{"what: two acks\n for one append\n", "", `no line "what:"`},
		{"ops: 50", "ops: many", `line 5: ops: expected a number of operations, found "many"`},
		{"profile: cold", "profile: tape", `line 6: profile: expected disk, cold, warm, tiers or broker, found "tape"`},
		{"breaks: K4 K1", "K4", `line 3: expected "KEY: VALUE"`},
		{"== core/a.go", "== sim/a.go", `line 8: "sim/a.go": expected a Go file, no test, of core, core/segment`},
		{"== core/a.go", "== core/a_test.go", "expected a Go file, no test"},
		{"== core/a.go", "== core/../core/a.go", "expected a Go file, no test"},
		{"-- new\n\tx := 2", "-- old\n\tx := 2", `line 13: "-- old" is out of place`},
		{"-- new\n\tx := 2", "-- new\n\tx := 1\n\n\ty := 2", "line 17: old and new text are the same"},
		{"\tz()\n", "", "line 17: the old text is empty"},
		{"-- end\n\n==", "-- end\n\tstray\n==", `line 20: expected "== FILE" or "-- old"`},
		{"}\n-- end\n", "}\n", `the text ends before "-- end"`},
		{sample[strings.Index(sample, "== core"):], "", "no edit"},
		{"z()", strings.Repeat("z", fileBytesMax), "expected at most 65536 bytes"},
	} {
		if strings.Count(sample, x.old) != 1 {
			t.Fatalf("%q is not there once", x.old)
		}
		_, err := Parse("x", strings.Replace(sample, x.old, x.with, 1))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q for %q: %v, want %q", x.with, x.old, err, x.want)
		}
	}
}

func TestApply(t *testing.T) {
	const code = "package a\n\tz()\n\t\tz()\n\tx := 1\n\n\ty := 2\n}\n"
	m, err := Parse("x", sample)
	if err != nil {
		t.Fatal(err)
	}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	changed, err := m.Apply(fstest.MapFS{"core/a.go": file(code), "tiers/disk/b.go": file("}\n")})
	want := map[string]string{"core/a.go": "package a\n\t\tz()\n\tx := 2\n}\n", "tiers/disk/b.go": "\t_ = 1\n}\n"}
	if err != nil || !reflect.DeepEqual(changed, want) {
		t.Errorf("got %q, %v\nwant %q", changed, err, want)
	}
	for text, want := range map[string]string{
		code + "\tz()\n": `stale: core/a.go: old text "z()": expected once, found 2 times; edit sim/mutants/list/x.mutant`,
		strings.Replace(code, "x := 1", "x := 3", 1): `stale: core/a.go: old text "x := 1 ...": expected once, found 0 times; edit`,
	} {
		_, err := m.Apply(fstest.MapFS{"core/a.go": file(text), "tiers/disk/b.go": file("}\n")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := m.Apply(fstest.MapFS{"core/a.go": file(code)}); err == nil || !strings.Contains(err.Error(), "stale: open tiers/disk/b.go") {
		t.Errorf("a file that is gone: %v", err)
	}
	m.Edits = append(m.Edits, Edit{"core/a.go", "\ty := 2\n", "\n"})
	if _, err := m.Apply(fstest.MapFS{"core/a.go": file(code), "tiers/disk/b.go": file("}\n")}); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("edits that overlap: %v", err)
	}
}

// Every mutant of the list can be planted in the code as it stands.
func TestListIsNotStale(t *testing.T) {
	root := os.DirFS("../..")
	list, err := Load(os.DirFS("list"))
	if err != nil {
		t.Fatal(err)
	}
	testing, err := os.ReadFile("../../TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if _, err := m.Apply(root); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for _, id := range m.Breaks {
			if !strings.Contains(string(testing), "\n| "+id+" |") && !strings.Contains(string(testing), fmt.Sprintf("\n| `%s` |", id)) {
				t.Errorf("%s breaks %s: no such checker in TESTING.md", m.Name, id)
			}
		}
	}
}

func TestLoadRefusesStrangers(t *testing.T) {
	_, err := Load(fstest.MapFS{"a.mutant": {Data: []byte(sample)}, "b.txt": {}})
	if err == nil || !strings.Contains(err.Error(), "b.txt: only files named *.mutant belong here") {
		t.Error(err)
	}
	list, err := Load(fstest.MapFS{"b.mutant": {Data: []byte(sample)}, "a.mutant": {Data: []byte(sample)}})
	if err != nil || len(list) != 2 || list[0].Name != "a" {
		t.Errorf("%v, %v", list, err)
	}
}

// The table of docs/evidence.md has a row for every mutant, and no other.
func TestEvidenceListsEveryMutant(t *testing.T) {
	list, err := Load(os.DirFS("list"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Mutants\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string]bool{}
	for line := range strings.Lines(table) {
		if name, ok := strings.CutPrefix(line, "| "); ok {
			name, _, _ = strings.Cut(name, " |")
			rows[name] = true
		}
	}
	delete(rows, "mutant") // the head of the table
	for _, m := range list {
		if !rows[m.Name] {
			t.Errorf("docs/evidence.md: no row of mutant %s; make the table with: varve-sim mutants --markdown", m.Name)
		}
		delete(rows, m.Name)
	}
	for name := range rows {
		t.Errorf("docs/evidence.md: there is no mutant %s", name)
	}
}
