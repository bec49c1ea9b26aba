// Command tidy checks what keeps the module honest: the packages that decide are pure, imports
// point one way, and the text means something to a stranger. `go test ./...` runs the same checks.
// Long functions and files are listed and do not fail.
package main

import (
	"fmt"
	"os"
)

func main() {
	root, err := moduleRoot(".")
	if err == nil {
		err = run(root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints outliers and findings; findings are an error.
func run(root string) error {
	t, err := loadTree(root)
	if err != nil {
		return err
	}
	for _, line := range outliers(t) {
		fmt.Println("long:", line)
	}
	found, err := check(t)
	if err != nil {
		return err
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		return fmt.Errorf("tidy: %d findings", len(found))
	}
	return nil
}

// check applies every rule.
func check(t *tree) ([]finding, error) {
	out := checkPurity(t)
	out = append(out, checkLayers(t)...)
	text, err := checkText(t.root)
	return append(out, text...), err
}
