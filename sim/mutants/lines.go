package mutants

import (
	"go/scanner"
	"go/token"
	"slices"
	"strings"
)

// sameLines returns the new text of an edit in as many lines as the old one has, so that all that comes
// behind it in its file stays in its line: what a package exports has the lines in it, and importers of
// one that exports the same need not be compiled again (Tool). It means the same to the compiler. A text
// that cannot be had in so few lines comes as it is.
func (e *Edit) sameLines() string {
	text, lines := e.New, strings.Count(e.Old, "\n")
	if strings.Count(text, "\n") > lines {
		text = oneLine(text)
	}
	if missing := lines - strings.Count(text, "\n"); missing > 0 {
		text += strings.Repeat("\n", missing)
	}
	return text
}

// sameLines returns the mutant with edits that leave the number of lines as it is.
func (m *Mutant) sameLines() *Mutant {
	same := *m
	same.Edits = slices.Clone(m.Edits)
	for i := range same.Edits {
		same.Edits[i].New = same.Edits[i].sameLines()
	}
	return &same
}

// oneLine writes Go code in one line, without its comments.
func oneLine(code string) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(code))
	bad := false
	s.Init(file, []byte(code), func(token.Position, string) { bad = true }, 0)
	var out strings.Builder
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF && (bad || strings.Contains(code, "//go:")):
			return code
		case tok == token.EOF:
			return strings.TrimSuffix(out.String(), " ") + "\n"
		case tok == token.SEMICOLON: // written, or meant by the end of a line
			text = ";"
		case text == "":
			text = tok.String()
		}
		out.WriteString(text + " ")
	}
}
