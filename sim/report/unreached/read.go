package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// block is a run of statements that are all reached or not.
type block struct {
	file       string
	line       int
	function   string
	place      string // file and function, as TESTING.md names it
	snippet    string // the line that the block begins on
	statements int
	reached    bool
}

// A profile's line: file:line.column,line.column statements count.
var profileLine = regexp.MustCompile(`^[^/]+/(\S+):(\d+)\.(\d+),\d+\.\d+ (\d+) (\d+)$`)

// readProfile reads a profile and the files that it is about.
func readProfile(root, name string) ([]block, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	sources := map[string]*source{}
	seen := map[string]int{} // index in blocks
	var blocks []block
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		m := profileLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("%s, line %d: expected a line of a coverage profile, found %q", name, n+1, line)
		}
		src := sources[m[1]]
		if src == nil {
			if src, err = readSource(root, m[1]); err != nil {
				return nil, err
			}
			sources[m[1]] = src
		}
		at, _ := strconv.Atoi(m[2])
		statements, _ := strconv.Atoi(m[4])
		key := m[1] + ":" + m[2] + "." + m[3]
		if i, ok := seen[key]; ok {
			blocks[i].reached = blocks[i].reached || m[5] != "0"
			continue
		}
		seen[key] = len(blocks)
		f := src.function(at)
		blocks = append(blocks, block{
			file: m[1], line: at, function: f, place: m[1] + " " + f, snippet: src.snippet(at), statements: statements, reached: m[5] != "0",
		})
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%s: expected a coverage profile, found nothing in it", name)
	}
	slices.SortStableFunc(blocks, func(a, b block) int {
		if a.file != b.file {
			return strings.Compare(a.file, b.file)
		}
		return a.line - b.line
	})
	return blocks, nil
}

// source is a Go file.
type source struct {
	lines []string
	decls []decl
}

type decl struct {
	name        string
	first, last int
}

func readSource(root, name string) (*source, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{lines: strings.Split(string(text), "\n")}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			s.decls = append(s.decls, decl{f.Name.Name, set.Position(f.Pos()).Line, set.Position(f.End()).Line})
		}
	}
	return s, nil
}

func (s *source) function(line int) string {
	for _, d := range s.decls {
		if d.first <= line && line <= d.last {
			return d.name
		}
	}
	return "?"
}

// snippet is a line without its comment.
func (s *source) snippet(line int) string {
	if line > len(s.lines) {
		return "?"
	}
	text, _, _ := strings.Cut(s.lines[line-1], " // ")
	return strings.TrimSpace(text)
}

// explained is what the page says of one function.
type explained struct {
	whole    bool
	snippets []string
	used     bool
}

var quoted = regexp.MustCompile("`([^`]+)`")

// readTable reads the explanations. A row without a reason is an error.
func readTable(root string) (map[string]*explained, error) {
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, err
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		return nil, fmt.Errorf("%s: expected a heading %q, found none", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	table := map[string]*explained{}
	for _, row := range strings.Split(section, "\n") {
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		const bar = "\x00"
		cells := strings.Split(strings.ReplaceAll(row, `\|`, bar), " |")
		if len(cells) < 4 || strings.TrimSpace(cells[2]) == "" {
			return nil, fmt.Errorf("%s: expected a function, its lines and a reason, found %q", page, row)
		}
		places := quoted.FindAllStringSubmatch(cells[0], -1)
		for _, p := range places {
			e := table[p[1]]
			if e == nil {
				e = &explained{}
				table[p[1]] = e
			}
			e.whole = e.whole || strings.Contains(cells[1], whole)
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				e.snippets = append(e.snippets, strings.ReplaceAll(m[1], bar, "|"))
			}
		}
	}
	return table, nil
}
