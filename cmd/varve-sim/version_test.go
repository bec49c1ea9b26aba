package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"varve/sim/mutants"
)

// version2 is a made-up next version of every format, as a change to the source: the header of a
// segment and of a warm entry have a field where version 1 has reserved zeros, and a manifest has one
// more line. It reads version 1 as well.
var version2 = mutants.Mutant{Name: "version-2", Edits: []mutants.Edit{
	{File: "core/segment/header.go", Old: "const FormatVersion = 1\n", New: "const FormatVersion = 2\n"},
	{
		File: "core/segment/header.go", Old: "	le.PutUint16(dst[8:], FormatVersion)\n",
		New: "	le.PutUint16(dst[8:], FormatVersion)\n	dst[headerUsed] = 'v'\n",
	},
	{
		File: "core/segment/header.go", Old: "	for _, b := range src[headerUsed:headerCRCPos] {\n",
		New: "	for _, b := range src[headerUsed+int(version)-1 : headerCRCPos] {\n",
	},
	{File: "core/manifest/manifest.go", Old: "const Version = 1\n", New: "const Version = 2\n"},
	{
		File: "core/manifest/encode.go", Old: "	dst = appendInt(dst, \",\\n\\\"start\\\":\", m.Start)\n",
		New: "	dst = append(dst, \",\\n\\\"made_up\\\":2\"...)\n	dst = appendInt(dst, \",\\n\\\"start\\\":\", m.Start)\n",
	},
	{
		File: "core/manifest/parse.go", Old: "	field string // the field that is read\n",
		New: "	field string // the field that is read\n	version uint64\n",
	},
	{File: "core/manifest/parse.go", Old: "	version := p.uint(1, math.MaxUint64)\n", New: "	version := p.uint(1, math.MaxUint64)\n	p.version = version\n"},
	{
		File: "core/manifest/parse.go", Old: "	m.Start = p.offset(\"start\", `\"start\":`)\n",
		New: "	if p.version >= 2 {\n		p.literal(\"\\\"made_up\\\":2,\\n\")\n	}\n	m.Start = p.offset(\"start\", `\"start\":`)\n",
	},
	{File: "core/warmentry/entry.go", Old: "const Version = 1\n", New: "const Version = 2\n"},
	{File: "core/warmentry/entry.go", Old: "	b[10] = byte(e.Kind)\n", New: "	b[10] = byte(e.Kind)\n	b[11] = 'v'\n"},
	{File: "core/warmentry/entry.go", Old: "	case b[11] != 0:\n", New: "	case b[11] != 0 && le.Uint16(b[8:]) == 1:\n"},
}}

// TestVersionBump: a program of the next version reads a log that this one wrote, on disk and in the
// bucket, goes on with it, and this one refuses what that wrote: by both versions, and unchanged.
func TestVersionBump(t *testing.T) {
	root, err := mutants.Root()
	if err != nil {
		t.Fatal(err)
	}
	build := func(m *mutants.Mutant) string {
		b := mutants.Builder{Root: root, Command: "./cmd/varve", Dir: t.TempDir()}
		program, _, err := b.Build(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	v1, v2 := build(nil), build(&version2)
	home := t.TempDir()
	config := filepath.Join(home, "varve.yaml")
	text := "segment_bytes: 8KiB\nmin_free_bytes: 0\ncold:\n  url: file://" + home + "/bucket\n"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(program, command, dir string, more ...string) (string, error) {
		args := append([]string{"log", command, "--dir", filepath.Join(home, dir), "--config", config}, more...)
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		return string(out), err
	}
	must := func(program, command, dir string, more ...string) string {
		out, err := run(program, command, dir, more...)
		if err != nil {
			t.Fatalf("%s of %s: %v\n%s", command, filepath.Base(program), err, out)
		}
		return out
	}
	refuses := func(command, dir string, texts ...string) {
		t.Helper()
		out, err := run(v1, command, dir)
		if err == nil {
			t.Errorf("version 1 takes %s for its own:\n%s", dir, out)
		}
		for _, text := range append(texts, "version 2", "up to 1", "use a newer varve") {
			if !strings.Contains(out, text) {
				t.Errorf("%s of %s says\n%s, not %q", command, dir, out, text)
			}
		}
	}
	must(v1, "append", "orders", "--create", "--count", "300", "--size", "100")
	must(v1, "offload", "orders")
	must(v1, "append", "orders", "--count", "40", "--size", "100")
	if err := os.CopyFS(home+"/copy", os.DirFS(home+"/orders")); err != nil {
		t.Fatal(err)
	}
	want := must(v1, "read", "orders")
	if got := must(v2, "read", "orders"); got != want || strings.Count(got, "\n") != 340 {
		t.Fatal("version 2 reads something else")
	}
	if out := must(v2, "check", "orders", "--deep", "--generated"); !strings.Contains(out, "340 are generated records") {
		t.Fatal(out)
	}

	must(v2, "append", "orders", "--count", "200", "--size", "100")
	if derived, err := filepath.Glob(home + "/orders/*.idx"); err != nil || len(derived) > 0 {
		t.Errorf("version 2 does not read footers of version 1: it derived %v, %v", derived, err)
	}
	must(v2, "offload", "orders")
	must(v2, "append", "orders", "--count", "40", "--size", "100")
	if got := must(v2, "read", "orders"); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 580 {
		t.Fatal("a log of both versions is read as something else")
	}
	refuses("read", "orders", "super.")
	refuses("append", "orders", "super.")
	if err := os.RemoveAll(home + "/orders"); err != nil {
		t.Fatal(err)
	}
	refuses("append", "orders", "manifest.json") // an empty directory, and the bucket of version 2
	must(v2, "check", "orders")

	// A segment of version 2 beside superblocks of version 1.
	must(v2, "append", "orders2", "--create", "--count", "1", "--size", "100")
	newer, err := filepath.Glob(home + "/orders2/*.seg")
	if err != nil || len(newer) != 1 {
		t.Fatal(newer, err)
	}
	b, err := os.ReadFile(newer[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "copy", "00000000000000000340-0000000900000001.seg"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	config = os.DevNull
	refuses("check", "copy", ".seg")
}

// TestWarmEntryOfVersion1: the golden warm entries are read by version 2.
func TestWarmEntryOfVersion1(t *testing.T) {
	root, err := mutants.Root()
	if err != nil {
		t.Fatal(err)
	}
	changed, err := version2.Apply(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	dir, overlay := t.TempDir(), map[string]string{}
	for file, text := range changed {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, file)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "list"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-v", "-run=^TestGoldenIsRead$", "-overlay="+filepath.Join(dir, "list"), "./core/warmentry")
	test.Dir = root
	if out, err := test.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestGoldenIsRead") {
		t.Fatalf("%v\n%s", err, out)
	}
}
