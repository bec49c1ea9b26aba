package main

import (
	"fmt"
	"go/ast"
)

// Sizes above which a piece is listed. Nothing fails: some pieces are better whole, and then they
// say why.
const (
	functionLinesMax = 70
	fileLinesMax     = 400
)

// outliers lists long functions and files.
func outliers(t *tree) []string {
	var out []string
	for _, p := range t.packages {
		for _, f := range p.files {
			whole := t.fset.File(f.ast.FileStart)
			if n := whole.LineCount(); n > fileLinesMax {
				out = append(out, fmt.Sprintf("%s: %d lines", f.name, n))
			}
			for _, decl := range f.ast.Decls {
				fun, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				from := whole.Line(fun.Pos())
				if n := whole.Line(fun.End()) - from + 1; n > functionLinesMax {
					out = append(out, fmt.Sprintf("%s:%d: %s: %d lines", f.name, from, fun.Name.Name, n))
				}
			}
		}
	}
	return out
}
