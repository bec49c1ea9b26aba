package fakevalkey_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"varve/sim/fakevalkey"
)

// TESTING.md lists every fault once, in the row of its id.
func TestPageListsFaults(t *testing.T) {
	page, err := os.ReadFile("../../TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n## The simulated Valkey server\n")
	if !ok {
		t.Fatal("no section")
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var listed, faults []string
	for _, row := range regexp.MustCompile(`(?m)^\| (W\d+) \|.*$`).FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`("+row[1]+`\.[a-z]+)`).FindAllStringSubmatch(row[0], -1) {
			listed = append(listed, name[1])
		}
	}
	for f := fakevalkey.Fault(1); f < fakevalkey.FaultCount; f++ {
		faults = append(faults, f.String())
	}
	if !slices.Equal(listed, faults) {
		t.Errorf("TESTING.md lists\n%v, there are\n%v", listed, faults)
	}
}
