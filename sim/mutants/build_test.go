package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module makes a module with one command, which prints what package core says by way of another one.
func module(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module tiny\n\ngo 1.26\n",
		"core/say.go": "package core\n\nfunc Say() string {\n\treturn \"right\"\n}\n",
		"sim/sim.go":  "package sim\n\nimport \"tiny/core\"\n\nfunc Say() string { return core.Say() }\n",
		"cmd/main.go": "package main\n\nimport \"tiny/sim\"\n\nfunc main() { print(sim.Say()) }\n",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// What is built has the bug, and the source tree has not.
func TestBuild(t *testing.T) {
	root := module(t)
	before, err := os.ReadFile(filepath.Join(root, "core/say.go"))
	if err != nil {
		t.Fatal(err)
	}
	bug := Edit{"core/say.go", "\treturn \"right\"\n", "\treturn \"wrong\"\n"}
	for want, m := range map[string]*Mutant{"right": nil, "wrong": {Name: "wrong", Edits: []Edit{bug}}} {
		b := Builder{Root: root, Command: "./cmd", Dir: t.TempDir()}
		program, cpu, err := b.Build(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != want || cpu <= 0 {
			t.Errorf("said %q, %v, %v of processor time, want %q", out, err, cpu, want)
		}
	}
	after, err := os.ReadFile(filepath.Join(root, "core/say.go"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the tree has changed: %q, %v", after, err)
	}
	bug.New = "\treturn 1\n"
	m := &Mutant{Name: "broken", Edits: []Edit{bug}}
	b := Builder{Root: root, Command: "./cmd", Dir: t.TempDir()}
	if _, _, err := b.Build(t.Context(), m); err == nil || !strings.Contains(err.Error(), "does not build: exit status 1: # tiny/core") {
		t.Errorf("a mutant that does not compile: %v", err)
	}
	m.Edits[0].Old = "gone\n"
	if _, _, err := b.Build(t.Context(), m); err == nil || !strings.Contains(err.Error(), "stale") {
		t.Errorf("a stale mutant: %v", err)
	}
}

func TestRoot(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "sim", "mutants", "list")); err != nil {
		t.Error(err)
	}
	t.Chdir(module(t))
	if _, err := Root(); err == nil || !strings.Contains(err.Error(), "no mutants in this module") {
		t.Errorf("in another module: %v", err)
	}
}
