package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report is one file: of a seed, of a kept schedule, of what other commands found.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	kept, figures := filepath.Join(dir, "kept.schedule"), filepath.Join(dir, "run.json")
	if code, _, errOut := program(t, newWorld, "replay 6 --ops 20 --save "+kept); code == exitUsage {
		t.Fatal(errOut)
	}
	code, out, errOut := program(t, newWorld, "run --seeds 20 --workers 1 --json")
	if code != exitOK {
		t.Fatal(errOut)
	}
	if err := os.WriteFile(figures, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"6 --ops 20":               "varve-sim replay 6 --ops 20",
		kept:                       "varve-sim replay " + kept,
		"6 --run " + figures:       "<dd>20 from 0 on</dd>",
		"--run " + figures:         "<dd>20 from 0 on</dd>",
		"--ops 8 --run " + figures: "seeds/s/core",
	} {
		page := filepath.Join(dir, "page.html")
		if code, _, errOut := program(t, newWorld, "report "+args+" --out "+page); code != exitOK {
			t.Errorf("%s: exit %d, %s", args, code, errOut)
			continue
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(b); !strings.HasPrefix(text, "<!doctype html>") || !strings.HasSuffix(text, "</html>\n") || !strings.Contains(text, want) {
			t.Errorf("%s: no %q in a page of %d bytes", args, want, len(b))
		}
	}
	for args, want := range map[string]string{
		"6":                                   "--out",
		"6 --ops 100000 --out x":              "--ops 100000",
		"--out " + dir:                        "is a directory",
		"absent --out " + dir + "/x":          "is no seed",
		"--run " + kept + " --out " + dir:     "varve-sim run --json",
		"--mutants " + kept + " --out " + dir: "varve-sim mutants --json",
		"--exhaust " + kept + " --out " + dir: "varve-sim exhaust --json",
	} {
		if code, _, errOut := program(t, newWorld, "report "+args); code == exitOK || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d, %s", args, code, errOut)
		}
	}
}
