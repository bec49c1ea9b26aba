package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// tree is the module's source, parsed. Folders with a go.mod of their own are not part of it.
type tree struct {
	root     string // directory of go.mod
	module   string // module path
	fset     *token.FileSet
	packages []*folder // in order of dir
}

// folder is one package: the Go files of a directory.
type folder struct {
	dir   string // relative to the module root, slash-separated; "" is the root
	path  string // import path
	files []*file
}

// file is one parsed Go file. Build constraints are not evaluated: every file must be tidy.
type file struct {
	name string // relative to the module root, slash-separated
	ast  *ast.File
	test bool
}

// finding is one broken rule.
type finding struct {
	pos  token.Position
	rule string
	text string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.pos.Filename, f.pos.Line, f.rule, f.text)
}

// moduleRoot walks up from dir to the directory that holds go.mod.
func moduleRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("tidy: no go.mod at or above %s", dir)
		}
	}
}

// loadTree parses every Go file of the module at root.
func loadTree(root string) (*tree, error) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("tidy: %w", err)
	}
	t := &tree{root: root, module: modulePath(mod), fset: token.NewFileSet()}
	if t.module == "" {
		return nil, fmt.Errorf("tidy: %s names no module", filepath.Join(root, "go.mod"))
	}
	byDir := map[string]*folder{}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, name, d)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		return t.add(byDir, name)
	})
	if err != nil {
		return nil, fmt.Errorf("tidy: %w", err)
	}
	for _, f := range byDir {
		t.packages = append(t.packages, f)
	}
	sort.Slice(t.packages, func(i, j int) bool { return t.packages[i].dir < t.packages[j].dir })
	return t, nil
}

// enter decides whether the walk goes into a directory.
func enter(root, name string, d fs.DirEntry) error {
	if name == root {
		return nil
	}
	base := d.Name()
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// add parses one file into its folder.
func (t *tree) add(byDir map[string]*folder, name string) error {
	rel, err := filepath.Rel(t.root, name)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(t.fset, rel, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(rel)
	if dir == "." {
		dir = ""
	}
	p := byDir[dir]
	if p == nil {
		p = &folder{dir: dir, path: path.Join(t.module, dir)}
		byDir[dir] = p
	}
	p.files = append(p.files, &file{name: rel, ast: parsed, test: strings.HasSuffix(rel, "_test.go")})
	return nil
}

// local returns the folder, relative to the module root, of an import path of this module.
func (t *tree) local(importPath string) (dir string, ok bool) {
	if importPath == t.module {
		return "", true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}

// lookup returns the package in a folder, nil if there is none.
func (t *tree) lookup(dir string) *folder {
	i := sort.Search(len(t.packages), func(i int) bool { return t.packages[i].dir >= dir })
	if i < len(t.packages) && t.packages[i].dir == dir {
		return t.packages[i]
	}
	return nil
}

// find makes a finding at a position.
func (t *tree) find(pos token.Pos, rule, format string, args ...any) finding {
	return finding{pos: t.fset.Position(pos), rule: rule, text: fmt.Sprintf(format, args...)}
}

// modulePath returns the module path that a go.mod declares.
func modulePath(mod []byte) string {
	lines := bufio.NewScanner(bytes.NewReader(mod))
	for lines.Scan() {
		if name, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "module "); ok {
			return strings.Trim(strings.TrimSpace(name), `"`)
		}
	}
	return ""
}

// within reports whether a folder is base or lies below it.
func within(dir, base string) bool {
	return dir == base || strings.HasPrefix(dir, base+"/")
}

// standard reports whether an import path belongs to the standard library: its first element has
// no dot, and it is not of this module.
func (t *tree) standard(importPath string) bool {
	if _, ok := t.local(importPath); ok {
		return false
	}
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}
