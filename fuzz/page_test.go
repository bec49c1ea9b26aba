package fuzz

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPageListsTargets compares the table of TESTING.md with the targets of the source.
func TestPageListsTargets(t *testing.T) {
	page, err := os.ReadFile("../TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n## Fuzzing\n")
	if !ok {
		t.Fatal("no section Fuzzing")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var listed []string
	for line := range strings.Lines(text) {
		if cell, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " |"); ok && strings.HasPrefix(line, "| ") {
			listed = append(listed, regexp.MustCompile(`Fuzz\w+`).FindAllString(cell, -1)...)
		}
	}
	out, err := exec.CommandContext(t.Context(), "grep", "-rhoE", `^func Fuzz[A-Za-z0-9_]+`, "--include=*_test.go", "..").Output()
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for line := range strings.Lines(string(out)) {
		targets = append(targets, strings.TrimSpace(strings.TrimPrefix(line, "func ")))
	}
	slices.Sort(listed)
	slices.Sort(targets)
	if !slices.Equal(listed, targets) {
		t.Errorf("TESTING.md lists\n%v, the source has\n%v", listed, targets)
	}
}
