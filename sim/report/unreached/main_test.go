package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	code = `package core

func pick(a, b bool) int {
	switch {
	case a || b: // one of them
		return 1
	default:
		return 2
	}
}

func (x *thing) name() string {
	return "x"
}
`
	profile = `mode: set
m/core/pick.go:3.27,4.9 1 1
m/core/pick.go:5.14,6.11 1 0
m/core/pick.go:7.10,8.11 1 1
m/core/pick.go:12.32,14.2 1 0
m/core/pick.go:7.10,8.11 1 0
`
	head = "# Testing\n\n" + heading + "\n\n| function | lines | why |\n|---|---|---|\n"
	rows = "| `core/pick.go pick` | `case a \\|\\| b:` | nobody has both |\n| `core/pick.go name` | the whole function | text |\n"
)

// compare runs the comparison over a small module.
func compare(t *testing.T, table, profile string, asRows bool) (int, string, error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"core/pick.go": code, page: head + table + "\n## Next\n\n| `core/gone.go x` | a | b |\n", "profile": profile} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	wrong, err := run(&out, root, filepath.Join(root, "profile"), asRows)
	return wrong, out.String(), err
}

func TestUnreached(t *testing.T) {
	for name, x := range map[string]struct {
		table, profile string
		wrong          int
		want           string
	}{
		"explained":      {rows, profile, 0, "50.0 % of 4 statements"},
		"nothing":        {"", profile, 2, "core/pick.go:5, pick: case a || b:"},
		"another line":   {strings.Replace(rows, "a \\|\\| b", "a", 1), profile, 2, "a line of core/pick.go pick that does not exist: case a:"},
		"no function":    {rows + "| `core/pick.go drop` | the whole function | text |\n", profile, 1, "stale: TESTING.md has core/pick.go drop"},
		"reached by now": {rows, strings.ReplaceAll(profile, " 0\n", " 1\n"), 0, "though explained: core/pick.go name"},
	} {
		wrong, out, err := compare(t, x.table, x.profile, false)
		if err != nil || wrong != x.wrong || !strings.Contains(out, x.want) {
			t.Errorf("%s: %d wrong, %v, want %d and %q in\n%s", name, wrong, err, x.wrong, x.want, out)
		}
	}
	// The rows that it prints are rows that it reads.
	_, out, _ := compare(t, "", profile, true)
	_, printed, _ := strings.Cut(out, "alone\n")
	if wrong, _, err := compare(t, strings.ReplaceAll(printed, "| |", "| because |"), profile, false); wrong != 0 || err != nil {
		t.Errorf("%d wrong with its own rows, %v:\n%s", wrong, err, printed)
	}
}

func TestUnreachedBadInput(t *testing.T) {
	for name, x := range map[string]struct{ table, profile, want string }{
		"no reason": {"| `core/pick.go pick` | `default:` | |\n", profile, "a reason"},
		"empty":     {rows, "mode: set\n", "found nothing"},
		"no file":   {rows, "m/core/gone.go:1.1,2.2 1 0\n", "gone.go"},
		"garbage":   {rows, "garbage\n", "line 1: expected a line of a coverage profile"},
	} {
		if _, _, err := compare(t, x.table, x.profile, false); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
