package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
)

// typeChecker checks packages of the module from their parsed files, and imports those of the
// standard library from the export data of the build cache: a second instead of ten.
type typeChecker struct {
	t    *tree
	std  types.Importer
	done map[string]*checked
}

// checked is one package with its types.
type checked struct {
	pkg  *types.Package
	info *types.Info
	errs []error
}

func newTypeChecker(t *tree) *typeChecker {
	return &typeChecker{t: t, std: importer.ForCompiler(t.fset, "gc", nil), done: map[string]*checked{}}
}

// Import implements types.Importer.
func (c *typeChecker) Import(name string) (*types.Package, error) {
	dir, ours := c.t.local(name)
	if !ours {
		return c.std.Import(name)
	}
	p := c.t.lookup(dir)
	if p == nil {
		return nil, fmt.Errorf("no package in folder %q", dir)
	}
	return c.check(p).pkg, nil
}

// check returns a package with its types, test files left out.
func (c *typeChecker) check(p *folder) *checked {
	if done := c.done[p.path]; done != nil {
		return done
	}
	out := &checked{info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Defs:  map[*ast.Ident]types.Object{},
		Uses:  map[*ast.Ident]types.Object{},
	}}
	c.done[p.path] = out
	var files []*ast.File
	for _, f := range p.files {
		// A file for another platform would declare things twice.
		dir := filepath.Join(c.t.root, filepath.FromSlash(p.dir))
		match, err := build.Default.MatchFile(dir, path.Base(f.name))
		if !f.test && (match || err != nil) {
			files = append(files, f.ast)
		}
	}
	conf := types.Config{Importer: c, Error: func(err error) { out.errs = append(out.errs, err) }}
	out.pkg, _ = conf.Check(p.path, c.t.fset, files, out.info) // conf.Error has the errors
	return out
}

// pureTypes reports what only types can tell: iteration over maps, channels that come from
// elsewhere, floats, and package variables that change.
func pureTypes(t *tree, rule *pureRule, p *folder, types *typeChecker) []finding {
	c := types.check(p)
	var out []finding
	if len(c.errs) > 0 {
		return []finding{t.find(p.files[0].ast.Package, "purity", "does not type-check, so that the rules cannot be: %v, and %d more",
			c.errs[0], len(c.errs)-1)}
	}
	for _, f := range p.files {
		if f.test {
			continue
		}
		out = append(out, mapRanges(t, c, f)...)
		if !rule.floats {
			out = append(out, floats(t, c, f)...)
		}
		if !rule.vars {
			out = append(out, mutableVars(t, c, f)...)
		}
	}
	return out
}

// mapRanges reports iteration over maps and channels.
func mapRanges(t *tree, c *checked, f *file) []finding {
	var out []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		r, ok := n.(*ast.RangeStmt)
		if !ok {
			return true
		}
		for _, under := range typeSet(c.info.TypeOf(r.X)) {
			switch under.(type) {
			case *types.Map:
				out = append(out, t.find(r.Pos(), "purity", "iterates over a map"))
			case *types.Chan:
				out = append(out, t.find(r.Pos(), "purity", "iterates over a channel"))
			}
		}
		return true
	})
	return out
}

// typeSet returns the underlying type, or all of them for a type parameter.
func typeSet(typ types.Type) []types.Type {
	if typ == nil {
		return nil
	}
	param, ok := types.Unalias(typ).(*types.TypeParam)
	if !ok {
		return []types.Type{typ.Underlying()}
	}
	var out []types.Type
	constraint, _ := param.Underlying().(*types.Interface)
	for i := 0; constraint != nil && i < constraint.NumEmbeddeds(); i++ {
		union, ok := constraint.EmbeddedType(i).(*types.Union)
		if !ok {
			out = append(out, constraint.EmbeddedType(i).Underlying())
			continue
		}
		for j := range union.Len() {
			out = append(out, union.Term(j).Type().Underlying())
		}
	}
	return out
}

// floats reports expressions of a floating-point or complex type.
func floats(t *tree, c *checked, f *file) []finding {
	var out []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		expr, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		if basic, ok := underlying(c.info.TypeOf(expr)).(*types.Basic); ok &&
			basic.Info()&(types.IsFloat|types.IsComplex) != 0 {
			out = append(out, t.find(expr.Pos(), "purity", "uses %s", basic))
			return false // its parts are floats as well
		}
		return true
	})
	return out
}

func underlying(typ types.Type) types.Type {
	if typ == nil {
		return nil
	}
	return typ.Underlying()
}

// mutableVars reports package variables that have no initial value or change after it: assigned
// to, in whole or in part, or their address taken. Errors and tables do neither.
func mutableVars(t *tree, c *checked, f *file) []finding {
	var out []finding
	for _, decl := range f.ast.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == 0 {
				out = append(out, t.find(v.Pos(), "purity", "package variable %s without a value", v.Names[0].Name))
			}
		}
	}
	changed := func(expr ast.Expr) {
		if name := packageVar(c, expr); name != "" {
			out = append(out, t.find(expr.Pos(), "purity", "changes package variable %s", name))
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				changed(lhs)
			}
		case *ast.IncDecStmt:
			changed(n.X)
		case *ast.RangeStmt:
			changed(n.Key)
			changed(n.Value)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				changed(n.X)
			}
		}
		return true
	})
	return out
}

// packageVar names the package variable that an expression is or is a part of.
func packageVar(c *checked, expr ast.Expr) string {
	for expr != nil {
		switch e := expr.(type) {
		case *ast.ParenExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SliceExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.SelectorExpr:
			if v, ok := c.info.Uses[e.Sel].(*types.Var); ok && isPackageVar(v) {
				return v.Name()
			}
			expr = e.X
		case *ast.Ident:
			if v, ok := c.info.Uses[e].(*types.Var); ok && isPackageVar(v) {
				return v.Name()
			}
			return ""
		default:
			return ""
		}
	}
	return ""
}

func isPackageVar(v *types.Var) bool {
	return !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}
