package mutants

import (
	"go/format"
	"os"
	"strings"
	"testing"
)

func TestSameLines(t *testing.T) {
	for _, x := range []struct{ old, text, want string }{
		{"a()\n", "b()\n", "b()\n"},
		{"a()\n\nb()\n", "", "\n\n\n"},
		{"a()\nb()\n", "if c { // why\n\td(\"x\",\n\t\t'y')\n}\n", "if c { d ( \"x\" , 'y' ) ; } ;\n\n"},
		{"a()\n", "\tfor {\n\t\tb++\n", "for { b ++ ;\n"},
		{"a()\n", "//go:noinline\nfunc b() {\n", "//go:noinline\nfunc b() {\n"},
		{"a()\n", "b(`1\n2`)\n", "b ( `1\n2` ) ;\n"},
	} {
		e := Edit{Old: x.old, New: x.text}
		if got := e.sameLines(); got != x.want {
			t.Errorf("%q for %q: %q, want %q", x.text, x.old, got, x.want)
		}
	}
}

// A file with the bug has the lines of the one without, and is the same code to gofmt.
func TestListKeepsLines(t *testing.T) {
	root := os.DirFS("../..")
	list, err := Load(os.DirFS("list"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		wrote, err := m.Apply(root)
		if err != nil {
			t.Fatal(err)
		}
		built, err := m.sameLines().Apply(root)
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range built {
			code, err := os.ReadFile("../../" + file)
			if err != nil {
				t.Fatal(err)
			}
			if a, b := strings.Count(text, "\n"), strings.Count(string(code), "\n"); a != b {
				t.Errorf("%s: %s has %d lines, and %d without the bug", m.Name, file, a, b)
			}
			if a, b := tokens(t, text), tokens(t, wrote[file]); a != b {
				t.Errorf("%s: %s is other code", m.Name, file)
			}
		}
	}
}

// tokens is code without its comments, blank lines and form.
func tokens(t *testing.T, code string) string {
	t.Helper()
	if _, err := format.Source([]byte(code)); err != nil {
		t.Error(err)
	}
	return strings.ReplaceAll(oneLine(code), "; }", "}")
}
