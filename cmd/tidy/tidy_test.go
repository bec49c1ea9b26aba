package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTidy applies every rule to this module.
func TestTidy(t *testing.T) {
	root, err := moduleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := loadTree(root)
	if err != nil {
		t.Fatal(err)
	}
	if whole.lookup("core") == nil || whole.lookup("cmd/tidy") == nil {
		t.Fatalf("packages are missing from the tree at %s", root)
	}
	found, err := check(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestRulesFail feeds each rule a module that breaks it. want is a part of a finding.
func TestRulesFail(t *testing.T) {
	for name, c := range map[string]struct{ file, src, want string }{
		"goroutine":       {"core/x.go", "package core\nfunc f() { go f() }", "starts a goroutine"},
		"select":          {"sim/x.go", "package sim\nfunc f() { select {} }", "select"},
		"channel type":    {"model/x.go", "package model\nfunc f(chan int) {}", "channel type"},
		"clock":           {"faultfs/x.go", "package faultfs\nimport \"time\"\nvar Now = time.Now", "imports time"},
		"clock in core":   {"core/x.go", "package core\nimport \"time\"\nconst D = time.Second", "allow-list"},
		"map":             {"core/segment/x.go", "package segment\nfunc f(m map[int]int) { for range m {} }", "iterates over a map"},
		"named map":       {"sim/x.go", "package sim\ntype m map[int]int\nfunc f(x m) { for range x {} }", "iterates over a map"},
		"map of generic":  {"sim/x.go", "package sim\nfunc f[M ~map[int]int](x M) { for range x {} }", "iterates over a map"},
		"maps.Keys":       {"sim/x.go", "package sim\nimport \"maps\"\nvar K = maps.Keys[map[int]int]", "imports maps"},
		"lock":            {"sim/x.go", "package sim\nimport \"sync\"\nvar M sync.Mutex", "imports sync"},
		"clock in tiers":  {"tiers/disk/x.go", "package disk\nimport \"time\"\nvar Now = time.Now", "imports time"},
		"random":          {"sim/x.go", "package sim\nimport \"math/rand/v2\"\nvar N = rand.Int", "imports math/rand/v2"},
		"float":           {"core/x.go", "package core\nfunc F(n float32) {}", "uses float32"},
		"float literal":   {"core/x.go", "package core\nconst C = 1.5", "float"},
		"unset variable":  {"core/x.go", "package core\nvar n int", "package variable n without a value"},
		"mutable":         {"core/x.go", "package core\nvar n = 1\nfunc f() { n++ }", "changes package variable n"},
		"mutable table":   {"core/x.go", "package core\nvar n = []int{1}\nfunc f() { n[0] = 2 }", "changes package variable n"},
		"address":         {"core/x.go", "package core\nvar n = 1\nfunc f() *int { return &n }", "changes package variable n"},
		"printing":        {"core/x.go", "package core\nimport \"fmt\"\nfunc f() { fmt.Println() }", "prints with fmt.Println"},
		"broken":          {"core/x.go", "package core\nfunc f() { x() }", "does not type-check"},
		"client in root":  {"x.go", "package varve\nimport _ \"example.com/client\"", "may not import example.com/client"},
		"client in tiers": {"tiers/x.go", "package tiers\nimport _ \"golang.org/x/sys/unix\"", "may not import golang.org/x/sys/unix"},
		"no entry":        {"other/x.go", "package other", "has no entry"},
		"issue number":    {"README.md", "\nsee issue" + " 12\n", "README.md:2: text: number of an issue"},
		"machine path":    {"a/b.txt", "cd /work" + "/main", "path of one machine"},
		"home":            {"b.txt", "x=/home/" + "ann/x", "path of one machine"},
		"registry":        {"b.txt", "https://proxy.golang" + ".org", "registry host"},
		"skip":            {"x_test.go", "package x\nfunc TestX(t *testing.T) { t.Skip" + "(1) }", "only tiertest.Lacks may"},
		"way it was made": {"b.txt", "Written in this" + " session", "how it was made"},
	} {
		t.Run(name, func(t *testing.T) {
			if found := checkModule(t, map[string]string{c.file: c.src}); !mentions(found, c.want) {
				t.Errorf("found %v, want %q", found, c.want)
			}
		})
	}
}

// TestShippedNeverImportsSim plants the import of each test-only package in each folder that ships.
func TestShippedNeverImportsSim(t *testing.T) {
	for _, dir := range []string{"core", "core/segment", "tiers", "tiers/disk", "tiers/disk/osfs", "cmd/varve", "broker/kafka"} {
		for _, base := range []string{"faultfs", "model", "sim", "sim/report"} {
			found := checkModule(t, map[string]string{
				filepath.Join(dir, "x.go"):  "package x\nimport _ \"varve/" + base + "\"",
				filepath.Join(base, "y.go"): "package y",
			})
			if !mentions(found, "varve/"+dir+" may not import varve/"+base) {
				t.Errorf("%s imports %s: found %v", dir, base, found)
			}
		}
	}
}

// TestTidyModule shows what is allowed.
func TestTidyModule(t *testing.T) {
	found := checkModule(t, map[string]string{
		"core/x.go": `package core
import ("errors"; "fmt"; "hash/crc32"; "varve/core/segment")
// ErrX is a sentinel.
var ErrX = errors.New("x")
var table = crc32.MakeTable(crc32.Castagnoli)
var names = [...]string{"a", "b"}
// F reads a map, which is allowed: its order does not show.
func F(m map[int]int, i int) error { n := segment.N; n++; return fmt.Errorf("%s %d %d %w", names[i], m[n], crc32.Update(0, table, nil), ErrX) }`,
		"core/segment/x.go":         "package segment\n// N is a number.\nconst N = 1 << 3",
		"core/x_test.go":            "package core\nimport (\"testing\"; \"time\"; \"varve/sim\")\nvar n int\nfunc TestX(t *testing.T) { go func() { n++ }(); time.Sleep(sim.D) }",
		"sim/x.go":                  "package sim\nimport \"varve/core\"\nvar changes = 1.5\nconst D = 1\nfunc f() { changes++; _ = core.ErrX }",
		"sim/report/x.go":           "package report\nimport \"time\"\nfunc f(m map[int]int) { for range m { go f(nil) }; time.Sleep(1) }",
		"faultfs/passthrough/x.go":  "package passthrough\nimport \"sync\"\nvar M sync.Mutex",
		"tiers/disk/x.go":           "package disk\nimport (\"io\"; \"sync\"; \"varve/core\")\ntype f struct { io.Closer; sync.Mutex }\nvar _ = core.ErrX",
		"cmd/varve/main.go":         "package main\nimport (\"os\"; _ \"varve\"; _ \"example.com/flags\")\nfunc main() { os.Exit(0) }",
		"x.go":                      "package varve\nimport (_ \"golang.org/x/sys/unix\"; _ \"varve/tiers/disk\")",
		"bench/go.mod":              "module varve/bench",
		"bench/main.go":             "package main\nimport _ \"varve/sim\"",
		"tiers/tiertest/machine.go": "package tiertest\nfunc Lacks(t interface{ Skip" + "(string) }) { t.Skip" + "(\"\") }",
		"README.md":                 "A fetch session of Kafka; /worker/x; this path: testdata/home/x",
	})
	for _, f := range found {
		t.Error(f)
	}
}

// checkModule applies every rule to a module made of the files.
func checkModule(t *testing.T, files map[string]string) []finding {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module varve\n"
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := loadTree(root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := check(whole)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func mentions(found []finding, text string) bool {
	for _, f := range found {
		if strings.Contains(f.String(), text) {
			return true
		}
	}
	return false
}

// TestOutliers checks the two sizes that are listed.
func TestOutliers(t *testing.T) {
	root := t.TempDir()
	body := "package x\nfunc long() {\n" + strings.Repeat("\n", 70) + "}\n" + strings.Repeat("\n", 400)
	for name, text := range map[string]string{"go.mod": "module m\n", "x.go": body} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := loadTree(root)
	if err != nil {
		t.Fatal(err)
	}
	want := "x.go: 473 lines\nx.go:2: long: 72 lines"
	if got := strings.Join(outliers(whole), "\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
