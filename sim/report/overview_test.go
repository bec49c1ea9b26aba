package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "given.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const (
	runJSON = `{"seeds": 20000, "from": 7, "seeds_per_second_per_core": 4321.4, "marks": {"disk D9.lie": 3, "core torn-tail": 1234567},
		"marks_missing": ["sim hang"], "violations": 2, "unheard": [1],
		"first_violation": {"seed": 9, "property": "K9", "text": "acked", "replay": "varve-sim replay 9"}}`
	mutantsJSON = `[{"name": "01-early", "what": "acks early", "seeds": 120, "first_seed": 3, "detections": 20, "rate": 1666.7,
		"rate_low": 1050.2, "rate_high": 2500, "checks": {"K10": 5, "K9": 15}, "marks": {"disk D17.clean": 20, "sim power": 4, "core rescue": 9}},
		{"name": "02-same", "equivalent": true, "seeds": 1000},
		{"name": "03-lives", "seeds": 1000, "failure": "survives"}]`
	boundJSON = `{"ops": 2, "operations": ["append", "roll"], "configurations": ["on_commit", "none"], "whole": true, "sequences": 91,
		"sequences_done": 91, "crash_points": [1200, 123456], "states": [5], "images_max": 1024, "sampled_points": [0, 7], "unheard": {}}`
)

// The overview shows the figures that were given, and no others.
func TestOverview(t *testing.T) {
	run, err := ReadRun(file(t, runJSON))
	if err != nil {
		t.Fatal(err)
	}
	mutants, err := ReadMutants(file(t, mutantsJSON))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := ReadBound(file(t, boundJSON))
	if err != nil {
		t.Fatal(err)
	}
	text := write(t, &Page{Overview: Overview{Run: run, Mutants: mutants, Bound: bound}})
	text = strings.ReplaceAll(text, "\u202f", " ") // the thin space in numbers
	for _, want := range []string{
		"20 000 from 7 on", "4 321 seeds/s/core", "1 234 567", "K9 by seed 9", "varve-sim replay 9", ">never<",
		"1 of 2 found, 1 proven equivalent", "1 667", "1 050 – 2 500", "survives", "equivalent, not found",
		"up to 2 of 2 operations", "whole: all 91", "1 200 &#43; 123 456", "0 &#43; 7, 1 024 images", "<dt>different states</dt><dd>not given", "on_commit, none", "D17.clean", "power",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, not := range []string{"Not given", "rescue", "unheard", `id="data"`} {
		if strings.Contains(text, not) {
			t.Errorf("there is %q", not)
		}
	}
	if a, b := strings.Index(text, "<span>K9<"), strings.Index(text, "<span>K10<"); a < 0 || b < a {
		t.Errorf("K9 at %d, K10 at %d", a, b)
	}
	empty := write(t, &Page{})
	if n := strings.Count(empty, "Not given"); n != 3 {
		t.Errorf("%d parts are not given, want 3", n)
	}
}

// A file that is not what it is said to be is an error of one line that names it and the command.
func TestOverviewRefusesOtherFiles(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", "7", `"x"`, `[{"seeds": 1}]`, `{"seeds": "many"}`} {
		name := file(t, text)
		check := func(kind string, err error) {
			t.Helper()
			if err == nil || !strings.HasPrefix(err.Error(), name) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "varve-sim "+kind+" --json") {
				t.Errorf("%q as %s: %v", text, kind, err)
			}
		}
		_, err := ReadRun(name)
		check("run", err)
		_, err = ReadMutants(name)
		check("mutants", err)
		_, err = ReadBound(name)
		check("exhaust", err)
	}
	if _, err := ReadRun(filepath.Join(t.TempDir(), "absent")); !os.IsNotExist(err) {
		t.Errorf("an absent file: %v", err)
	}
}
