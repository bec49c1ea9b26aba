package main

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pureRule says how deterministic the packages of a folder must be. The simulator can replay a
// seed only if nothing that decides depends on scheduling, clocks, map order or randomness.
type pureRule struct {
	dir    string
	below  bool     // folders below it too
	allow  []string // packages of the standard library that may be imported; nil: all but impure
	permit []string // impure packages that are allowed all the same
	floats bool
	vars   bool // package variables may change
}

// pureRules in order of precedence: the first entry that covers a folder counts.
var pureRules = []pureRule{
	{dir: "core", below: true, allow: coreImports},
	{dir: "broker/kafka/batch", allow: coreImports}, // hostile bytes end here, so they can be tried here
	{dir: "broker/kafka/verdict", allow: coreImports},
	{dir: "model", below: true, floats: true, vars: true},
	{dir: "faultfs", below: true, floats: true, vars: true},
	// Its calls have the context that the seam gives them, and never look at it.
	{dir: "sim/fakebucket", permit: []string{"context"}, floats: true, vars: true},
	// The stack of a panic is shown, and decides nothing.
	{dir: "sim", below: true, permit: []string{"runtime/debug"}, floats: true, vars: true},
	// The executors and the hot store run inside the simulator as well. They may lock, because a
	// log's readers use them beside its writer, and hand on a context, which bounds a call to a bucket.
	{dir: "tiers", permit: []string{"context", "sync", "sync/atomic"}, floats: true, vars: true},
	{dir: "tiers/valkey", floats: true, vars: true},
	{dir: "tiers/disk", permit: []string{"sync", "sync/atomic"}, floats: true, vars: true},
}

// impureAllowed are folders where threads, clocks and maps are needed and nothing is decided.
var impureAllowed = []string{"faultfs/passthrough", "model/porcupine", "sim/mutants", "sim/report"}

// coreImports is all that the pure core may use.
var coreImports = []string{
	"bytes", "cmp", "encoding/binary", "errors", "fmt", "hash/crc32", "io", "math", "math/bits",
	"slices", "sort", "strconv", "strings",
}

// impure are packages, with all below them, that bring in the world outside: clocks, threads,
// randomness, files, the network, memory addresses. maps is here for its iterators.
var impure = []string{
	"context", "crypto/rand", "log", "maps", "math/rand", "net", "os", "plugin", "reflect",
	"runtime", "sync", "syscall", "testing", "time", "unsafe",
}

// pureRuleOf returns the rule for a folder, nil if it may do as it likes.
func pureRuleOf(dir string) *pureRule {
	for _, exempt := range impureAllowed {
		if within(dir, exempt) {
			return nil
		}
	}
	for i := range pureRules {
		r := &pureRules[i]
		if dir == r.dir || r.below && within(dir, r.dir) {
			return r
		}
	}
	return nil
}

// checkPurity applies the rules that need only syntax, then those that need types.
func checkPurity(t *tree) []finding {
	var out []finding
	types := newTypeChecker(t)
	for _, p := range t.packages {
		rule := pureRuleOf(p.dir)
		if rule == nil {
			continue
		}
		for _, f := range p.files {
			if !f.test {
				out = append(out, pureImports(t, rule, f)...)
				out = append(out, pureSyntax(t, rule, f)...)
			}
		}
		out = append(out, pureTypes(t, rule, p, types)...)
	}
	return out
}

// pureImports reports imports that the rule does not allow.
func pureImports(t *tree, rule *pureRule, f *file) []finding {
	var out []finding
	for _, spec := range f.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if _, ours := t.local(name); ours { // checkLayers judges these
			continue
		}
		switch {
		case !t.standard(name):
			out = append(out, t.find(spec.Pos(), "purity", "imports %s: standard library only", name))
		case rule.allow != nil && !slices.Contains(rule.allow, name):
			out = append(out, t.find(spec.Pos(), "purity", "imports %s, which is not in its allow-list", name))
		case rule.allow == nil && isImpure(name) && !slices.Contains(rule.permit, name):
			out = append(out, t.find(spec.Pos(), "purity", "imports %s, which is not deterministic", name))
		}
		if spec.Name != nil && (spec.Name.Name == "." || spec.Name.Name == "_") {
			out = append(out, t.find(spec.Pos(), "purity", "imports %s as %s", name, spec.Name.Name))
		}
	}
	return out
}

func isImpure(name string) bool {
	return slices.ContainsFunc(impure, func(base string) bool { return within(name, base) })
}

// pureSyntax reports threads, channels, printing and float literals.
func pureSyntax(t *tree, rule *pureRule, f *file) []finding {
	var out []finding
	bad := func(n ast.Node, text string) { out = append(out, t.find(n.Pos(), "purity", "%s", text)) }
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			bad(n, "starts a goroutine")
		case *ast.SelectStmt:
			bad(n, "select")
		case *ast.ChanType:
			bad(n, "channel type")
		case *ast.SendStmt:
			bad(n, "channel send")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				bad(n, "channel receive")
			}
		case *ast.BasicLit:
			if !rule.floats && (n.Kind == token.FLOAT || n.Kind == token.IMAG) {
				bad(n, "float literal "+n.Value)
			}
		case *ast.CallExpr:
			if name := printing(n); name != "" {
				bad(n, "prints with "+name)
			}
		case *ast.Comment:
			if strings.HasPrefix(n.Text, "//go:linkname") {
				bad(n, "go:linkname")
			}
		}
		return true
	})
	return out
}

// printing names the function when a call writes to the process's own output.
func printing(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		if fun.Name == "print" || fun.Name == "println" {
			return fun.Name
		}
	case *ast.SelectorExpr:
		if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "fmt" {
			if ok, _ := path.Match("Print*", fun.Sel.Name); ok {
				return "fmt." + fun.Sel.Name
			}
		}
	}
	return ""
}
