// Command unreached compares the lines that a run of the simulator never reached with those that
// TESTING.md explains. A line that is neither reached nor explained fails.
//
//	unreached [-rows] PROFILE     in the folder of the module; PROFILE as `go tool covdata textfmt` writes it
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// page and heading are where the explanations stand.
const (
	page    = "TESTING.md"
	heading = "## Lines that no seed reaches"
	whole   = "the whole function"
)

func main() {
	rows := flag.Bool("rows", false, "print what is not explained as rows of the table")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "unreached: expected the name of a coverage profile; usage: unreached [-rows] PROFILE")
		os.Exit(2)
	}
	wrong, err := run(os.Stdout, ".", flag.Arg(0), *rows)
	if err != nil {
		fmt.Fprintln(os.Stderr, "unreached:", err)
		os.Exit(1)
	}
	if wrong > 0 {
		fmt.Fprintf(os.Stderr, "unreached: %d lines; reach them, or explain them in %s, %q\n", wrong, page, heading)
		os.Exit(1)
	}
}

// run compares and returns how much is wrong.
func run(out io.Writer, root, profile string, rows bool) (wrong int, err error) {
	blocks, err := readProfile(root, profile)
	if err != nil {
		return 0, err
	}
	table, err := readTable(root)
	if err != nil {
		return 0, err
	}
	report(out, blocks)
	missing := map[string][]string{} // place: snippets
	for _, b := range blocks {
		if b.reached || b.statements == 0 {
			continue
		}
		if e := table[b.place]; e != nil && (e.whole || slices.Contains(e.snippets, b.snippet)) {
			e.used = true
			continue
		}
		wrong++
		missing[b.place] = append(missing[b.place], b.snippet)
		if !rows {
			fmt.Fprintf(out, "not explained: %s:%d, %s: %s\n", b.file, b.line, b.function, b.snippet)
		}
	}
	if rows {
		printRows(out, blocks, missing)
	}
	return wrong + stale(out, blocks, table), nil
}

// report prints the share of statements that were reached.
func report(out io.Writer, blocks []block) {
	reached, all := map[string]int{}, map[string]int{}
	var folders []string
	for _, b := range blocks {
		folder := b.file[:strings.LastIndex(b.file, "/")]
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		all[folder] += b.statements
		if b.reached {
			reached[folder] += b.statements
		}
	}
	for _, f := range folders {
		fmt.Fprintf(out, "%-12s %5.1f %% of %d statements reached by seeds alone\n", f, 100*float64(reached[f])/float64(all[f]), all[f])
	}
}

// stale reports explanations of what does not exist any more, and says which are not needed for this
// profile: those may be of lines that few seeds reach.
func stale(out io.Writer, blocks []block, table map[string]*explained) (wrong int) {
	snippets := map[string][]string{}
	for _, b := range blocks {
		snippets[b.place] = append(snippets[b.place], b.snippet)
	}
	for _, place := range sorted(table) {
		e := table[place]
		have, ok := snippets[place]
		if !ok {
			fmt.Fprintf(out, "stale: %s has %s, which does not exist\n", page, place)
			wrong++
			continue
		}
		for _, s := range e.snippets {
			if !slices.Contains(have, s) {
				fmt.Fprintf(out, "stale: %s has a line of %s that does not exist: %s\n", page, place, s)
				wrong++
			}
		}
		if !e.used {
			fmt.Fprintf(out, "reached by these seeds, though explained: %s\n", place)
		}
	}
	return wrong
}

// printRows prints rows for the table, to be explained.
func printRows(out io.Writer, blocks []block, missing map[string][]string) {
	total := map[string]int{}
	for _, b := range blocks {
		if b.statements > 0 {
			total[b.place]++
		}
	}
	for _, place := range sorted(missing) {
		lines := whole
		if len(missing[place]) < total[place] {
			quoted := []string{}
			for _, s := range missing[place] {
				if q := "`" + strings.ReplaceAll(s, "|", `\|`) + "`"; !slices.Contains(quoted, q) {
					quoted = append(quoted, q)
				}
			}
			lines = strings.Join(quoted, " ")
		}
		fmt.Fprintf(out, "| `%s` | %s | |\n", place, lines)
	}
}

func sorted[T any](m map[string]T) []string {
	keys := []string{}
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
