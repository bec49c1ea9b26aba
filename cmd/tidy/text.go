package main

import (
	"bytes"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// textBytesMax bounds the files that are read as text.
const textBytesMax = 1 << 20

// textRule is a pattern that tracked text must not match, because it means something only to
// whoever wrote it, on the machine where it was written.
type textRule struct {
	pattern *regexp.Regexp
	why     string
	except  string // the one file that may match
}

// Patterns are put together from halves, so that this file keeps its own rule.
var textRules = []textRule{
	{regexp.MustCompile(`(^|[\s"'` + "`" + `=(:])/(work|home/[a-z]+|root|Users/[A-Za-z]+)` + `/`), "path of one machine", ""},
	{regexp.MustCompile(`(?i)\b(proxy\.golang` + `\.org|deb\.debian` + `\.org|registry\.npmjs` + `\.org|sum\.golang` + `\.org)`), "registry host", ""},
	{regexp.MustCompile(`(?i)\b(this|developer|helper|coding)` + ` session\b`), "speaks of how it was made", ""},
	{regexp.MustCompile(`(?i)\bissue` + `s? #?[0-9]+\b`), "number of an issue that a reader cannot open", ""},
	{regexp.MustCompile(`\b[tb]\.Skip` + `(f|Now)?\(`), "skips a test where only tiertest.Lacks may", "tiers/tiertest/machine.go"},
}

// checkText reports tracked lines that match a text rule.
func checkText(root string) ([]finding, error) {
	names, err := trackedFiles(root)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, name := range names {
		full := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() || info.Size() > textBytesMax {
			continue // deleted in the work tree, a link, or data
		}
		text, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(text, 0) < 0 && utf8.Valid(text) {
			out = append(out, textFindings(name, string(text))...)
		}
	}
	return out, nil
}

// textFindings applies the text rules to one file.
func textFindings(name, text string) []finding {
	var out []finding
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, rule := range textRules {
			if name == rule.except {
				continue
			}
			if found := rule.pattern.FindString(line); found != "" {
				out = append(out, finding{
					pos:  token.Position{Filename: name, Line: number},
					rule: "text", text: rule.why + ": " + strings.TrimSpace(found),
				})
			}
		}
	}
	return out
}

// trackedFiles lists the files under version control, or every file where there is none (an
// unpacked archive).
func trackedFiles(root string) ([]string, error) {
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	if out, err := list.Output(); err == nil && len(out) > 0 {
		return strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), nil
	}
	var names []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if rel, err := filepath.Rel(root, name); err == nil && !d.IsDir() {
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names, err
}
