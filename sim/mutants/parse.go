package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Mutant is one planted bug.
type Mutant struct {
	Name       string   // of its file, without the extension
	What       string   // what the bug does
	Breaks     []string // ids of the properties that it breaks
	Equivalent string   // the proof that no client can tell it from the right code; "" if it is a bug
	Ops        int      // operations of each seed; 0: drawn
	Profile    string   // of the seeds: disk or cold
	Needs      []Need   // what the simulator cannot do without to find it
	Edits      []Edit
}

// Need says that a bug is hardly found any more without a fault or a checker.
type Need struct {
	Name   string
	Beside []string // others that would find it as well, and are left out too
}

// Edit replaces whole lines of one source file.
type Edit struct {
	File     string // from the root of the module, with slashes
	Old, New string // each line with its end
}

// Profiles: what the seeds simulate that are run against a mutant.
const (
	Disk  = "disk"
	Cold  = "cold"
	Warm  = "warm"
	Tiers = "tiers"

	Broker = "broker"
)

// Dir is the folder of the mutants, from the root of the module.
const Dir = "sim/mutants/list"

// Extension is that of a mutant's file.
const Extension = ".mutant"

// fileBytesMax is far above the size of a mutant that a person can read.
const fileBytesMax = 64 << 10

// Load reads every mutant in a folder, in the order of their names.
func Load(dir fs.FS) ([]*Mutant, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	var all []*Mutant
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), Extension)
		if !ok {
			return nil, fmt.Errorf("%s: only files named *%s belong here", e.Name(), Extension)
		}
		text, err := fs.ReadFile(dir, e.Name())
		if err != nil {
			return nil, err
		}
		m, err := Parse(name, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Parse reads the text of a mutant. An error names the file and the line.
func Parse(name, text string) (*Mutant, error) {
	if len(text) > fileBytesMax {
		return nil, fmt.Errorf("%s%s: expected at most %d bytes, found %d", name, Extension, fileBytesMax, len(text))
	}
	p := parser{m: &Mutant{Name: name, Profile: Disk}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%s%s, line %d: %w", name, Extension, n, err)
		}
	}
	if err := p.end(); err != nil {
		return nil, fmt.Errorf("%s%s: %w", name, Extension, err)
	}
	return p.m, nil
}

// parser reads a mutant, line by line.
type parser struct {
	m    *Mutant
	at   place
	key  string // that a line which begins with a space goes on with
	file string
	edit Edit
}

// place is where in the text the parser is.
type place uint8

const (
	inHead place = iota
	inFile       // between pairs
	inOld
	inNew
)

func (p *parser) line(line string) error {
	text := strings.TrimRight(line, "\r\n")
	switch p.at {
	case inOld, inNew:
		return p.body(text)
	case inHead:
		if !strings.HasPrefix(text, "==") {
			return p.head(text)
		}
	}
	switch {
	case strings.TrimSpace(text) == "":
	case strings.HasPrefix(text, "== "):
		return p.section(strings.TrimSpace(text[3:]))
	case text == "-- old" && p.at == inFile:
		p.at, p.edit = inOld, Edit{File: p.file}
	default:
		return fmt.Errorf("expected \"== FILE\" or \"-- old\", found %q", text)
	}
	return nil
}

func (p *parser) head(text string) error {
	if strings.HasPrefix(text, " ") && p.key != "" {
		return p.value(p.key, strings.TrimSpace(text))
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	key, value, ok := strings.Cut(text, ":")
	if !ok {
		return fmt.Errorf("expected \"KEY: VALUE\" or \"== FILE\", found %q", text)
	}
	p.key = key
	return p.value(key, strings.TrimSpace(value))
}

func (p *parser) value(key, value string) error {
	more := func(to *string) { *to = strings.TrimSpace(*to + " " + value) }
	switch key {
	case "what":
		more(&p.m.What)
	case "breaks":
		p.m.Breaks = append(p.m.Breaks, strings.Fields(value)...)
	case "equivalent":
		more(&p.m.Equivalent)
	case "ops":
		ops, err := strconv.ParseUint(value, 10, 15)
		if err != nil {
			return fmt.Errorf("ops: expected a number of operations, found %q", value)
		}
		p.m.Ops = int(ops)
	case "profile":
		if !slices.Contains([]string{Disk, Cold, Warm, Tiers, Broker}, value) {
			return fmt.Errorf("profile: expected %s, %s, %s, %s or %s, found %q", Disk, Cold, Warm, Tiers, Broker, value)
		}
		p.m.Profile = value
	case "needs":
		names, beside, _ := strings.Cut(value, " beside ")
		for _, name := range strings.Fields(names) {
			p.m.Needs = append(p.m.Needs, Need{Name: name, Beside: strings.Fields(beside)})
		}
	default:
		return fmt.Errorf("expected what, breaks, needs, equivalent, ops or profile, found %q", key)
	}
	return nil
}

// folders hold the code in which a bug may be planted: the product, and of the simulated disk what
// stands for the operating system's part of it.
var folders = []string{"core", "core/segment", "core/manifest", "tiers/disk", "tiers/cold", "tiers/warm", "tiers/valkey", "faultfs", "core/topics", "broker/kafka/batch", "broker/kafka/verdict"}

func (p *parser) section(file string) error {
	if !slices.Contains(folders, path.Dir(file)) || path.Clean(file) != file || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
		return fmt.Errorf("%q: expected a Go file, no test, of %s", file, strings.Join(folders, ", "))
	}
	p.at, p.file = inFile, file
	return nil
}

// body reads a line of old or new text.
func (p *parser) body(text string) error {
	switch {
	case text == "-- new" && p.at == inOld:
		if strings.TrimSpace(p.edit.Old) == "" {
			return errors.New("the old text is empty: expected at least one line")
		}
		p.at = inNew
	case text == "-- end" && p.at == inNew:
		if p.edit.Old == p.edit.New {
			return errors.New("old and new text are the same")
		}
		p.m.Edits = append(p.m.Edits, p.edit)
		p.at = inFile
	case text == "-- old" || text == "-- new" || text == "-- end" || strings.HasPrefix(text, "== "):
		return fmt.Errorf("%q is out of place: expected -- old, -- new, -- end in this order", text)
	case p.at == inOld:
		p.edit.Old += text + "\n"
	default:
		p.edit.New += text + "\n"
	}
	return nil
}

func (p *parser) end() error {
	switch {
	case p.at == inOld || p.at == inNew:
		return errors.New("the text ends before \"-- end\"")
	case p.m.What == "":
		return errors.New("no line \"what:\"")
	case len(p.m.Breaks) == 0:
		return errors.New("no line \"breaks:\"")
	case len(p.m.Edits) == 0:
		return errors.New("no edit: expected \"== FILE\", then -- old, -- new, -- end")
	}
	return nil
}
