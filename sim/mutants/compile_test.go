package mutants

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// toolEnv makes the test binary what the go command calls in place of a tool; its value is the folder
// for what is kept. It writes down there which package it compiled.
const toolEnv = "VARVE_MUTANTS_TOOL"

func TestMain(m *testing.M) {
	kept := os.Getenv(toolEnv)
	if kept == "" {
		os.Exit(m.Run())
	}
	before := archives(kept)
	code := Tool(kept, os.Args[1:], os.Stdout, os.Stderr)
	if at := slices.Index(os.Args, "-p"); at > 0 && filepath.Base(os.Args[1]) == "compile" {
		how := " taken\n"
		if !maps.Equal(archives(kept), before) {
			how = " compiled\n"
		}
		log, err := os.OpenFile(kept+"/log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = log.WriteString(os.Args[at+1] + how)
			_ = log.Close()
		}
	}
	os.Exit(code)
}

// archives are those that are kept, with the times when they were.
func archives(kept string) map[string]time.Time {
	all := map[string]time.Time{}
	names, _ := filepath.Glob(kept + "/*.a")
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			all[name] = info.ModTime()
		}
	}
	return all
}

// A package over a bug that changes nothing of what is exported is compiled once, for the first of such
// bugs; one over a bug that does change that is compiled again. All programs have their bug.
func TestTool(t *testing.T) {
	root, kept := module(t), t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(toolEnv, kept)
	b := Builder{Root: root, Command: "./cmd", Dir: t.TempDir(), Tool: []string{self}}
	code := "package core\n\nvar right = \"right\"\n\n//go:noinline\nfunc Say() string {\n\treturn right\n}\n"
	if err := os.WriteFile(root+"/core/say.go", []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ name, text, says, compiled string }{
		{"one", "\tif right != \"\" {\n\t\treturn \"one\"\n\t}\n\treturn right\n", "one", "tiny/core compiled, tiny/sim compiled, main compiled"},
		{"two", "\treturn right + right\n", "rightright", "tiny/core compiled, tiny/sim taken"},
		{"three", "\treturn \"three\"\n}\n\nfunc More() string {\n\treturn right\n", "three", "tiny/core compiled, tiny/sim compiled, main taken"},
	} {
		_ = os.Remove(kept + "/log")
		m := &Mutant{Name: x.name, Edits: []Edit{{"core/say.go", "\treturn right\n", x.text}}}
		program, _, err := b.Build(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(kept + "/log")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(strings.TrimSpace(string(log)), "\n", ", "); got != x.compiled {
			t.Errorf("%s: %s, want %s", x.name, got, x.compiled)
		}
		if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != x.says {
			t.Errorf("%s: said %q, %v", x.name, out, err)
		}
	}
}

// What is no compilation goes through as it is, with its output and exit code.
func TestToolPassesOn(t *testing.T) {
	for _, x := range []struct {
		line []string
		code int
		says string
	}{
		{[]string{"/bin/sh", "-c", "echo to out; echo to err >&2; exit 3"}, 3, "to out\nto err\n"},
		{nil, 1, "no tool"},
		{[]string{"/nowhere/link"}, 1, "no such file"},
		{[]string{"/nowhere/compile", "-o", "x", "-buildid", "y", "-importcfg", "z", "gone.go"}, 1, "gone.go"},
		{[]string{"/nowhere/compile", "-V=full"}, 1, "/nowhere/compile"},
	} {
		var out bytes.Buffer
		if code := Tool(t.TempDir(), x.line, &out, &out); code != x.code || !strings.Contains(out.String(), x.says) {
			t.Errorf("%v: code %d, %q", x.line, code, out.String())
		}
	}
}

func TestExported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.a")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	head := archiveHead + exportsName + strings.Repeat(" ", memberSizeAt-len(exportsName)) + "32        `\n"
	write(head + "go object\nbuild id \"ab/cd\"\n\nwhat and more")
	if what, err := exported(file); err != nil || string(what) != "go object\n\n\nwhat" {
		t.Errorf("%q, %v", what, err)
	}
	for _, bad := range []string{"", "!<arch>\n", strings.Replace(head, exportsName, "_go_.o   ", 1), strings.Replace(head, "32", "zz", 1)} {
		write(bad)
		if _, err := exported(file); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
