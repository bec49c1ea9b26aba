package mutants

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// StaleError says that the old text of a mutant does not stand exactly once where it should. The code
// has moved on; the mutant has to follow.
type StaleError struct {
	Mutant string
	File   string
	Old    string
	Found  int // times
}

// Error names the mutant, the file and the first line of the text.
func (e *StaleError) Error() string {
	line, _, more := strings.Cut(strings.TrimRight(e.Old, "\n"), "\n")
	if more {
		line += " ..."
	}
	return fmt.Sprintf("stale: %s: old text %q: expected once, found %d times; edit %s/%s%s",
		e.File, strings.TrimSpace(line), e.Found, Dir, e.Mutant, Extension)
}

// Apply returns the files that the mutant changes, by name, as they are with the bug.
func (m *Mutant) Apply(root fs.FS) (map[string]string, error) {
	var files []string
	for _, e := range m.Edits {
		if !slices.Contains(files, e.File) {
			files = append(files, e.File)
		}
	}
	changed := map[string]string{}
	for _, file := range files {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, fmt.Errorf("stale: %w; edit %s/%s%s", err, Dir, m.Name, Extension)
		}
		if changed[file], err = m.applyTo(file, string(text)); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// applyTo makes the edits of one file. All old text is looked for in the file as it is.
func (m *Mutant) applyTo(file, text string) (string, error) {
	type cut struct {
		at int
		Edit
	}
	var cuts []cut
	for _, e := range m.Edits {
		if e.File != file {
			continue
		}
		at, n := wholeLines(text, e.Old)
		if n != 1 {
			return "", &StaleError{Mutant: m.Name, File: file, Old: e.Old, Found: n}
		}
		cuts = append(cuts, cut{at, e})
	}
	slices.SortFunc(cuts, func(a, b cut) int { return a.at - b.at })
	var out strings.Builder
	from := 0
	for _, c := range cuts {
		if c.at < from {
			return "", fmt.Errorf("%s%s: two edits of %s overlap", m.Name, Extension, file)
		}
		out.WriteString(text[from:c.at])
		out.WriteString(c.New)
		from = c.at + len(c.Old)
	}
	out.WriteString(text[from:])
	return out.String(), nil
}

// wholeLines returns where some lines first stand in a text, and how often.
func wholeLines(text, lines string) (at, n int) {
	for from := 0; ; {
		i := strings.Index(text[from:], lines)
		if i < 0 {
			return at, n
		}
		i += from
		if i == 0 || text[i-1] == '\n' {
			if n == 0 {
				at = i
			}
			n++
		}
		from = i + 1
	}
}
