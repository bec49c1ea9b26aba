package sim

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"varve/faultfs"
	"varve/model"
)

// page returns a document of the root folder.
func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// section returns what stands below a heading, up to the next heading of any level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	rest, _, _ = strings.Cut(rest, "\n#")
	return rest
}

// rows returns the lines of the tables in a text.
func rows(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "|---") {
			all = append(all, line)
		}
	}
	return all
}

var quoted = regexp.MustCompile("`([^`\n]+)`")

// first returns what is quoted in the first cell of each row.
func first(text string) []string {
	var all []string
	for _, row := range rows(text) {
		cell, _, _ := strings.Cut(row[2:], " |")
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// wantSame wants two lists to hold the same words, each once.
func wantSame(t *testing.T, what string, got, want []string) {
	t.Helper()
	seen := map[string]int{}
	for _, w := range got {
		seen[w]++
	}
	for _, w := range want {
		if seen[w] != 1 {
			t.Errorf("%s: %q is there %d times, want once", what, w, seen[w])
		}
		delete(seen, w)
	}
	for w := range seen {
		t.Errorf("%s: %q does not exist", what, w)
	}
}

var markOrSwitch = regexp.MustCompile("`(disk|core|bucket|server|sim|topics|switch) ([A-Za-z0-9.-]+)`")

// TESTING.md lists every mark once: faults in the table of faults, what an open decides in the table
// of verdicts, the rest in that of rare branches; and every switch once.
func TestPageListsFaultsAndMarks(t *testing.T) {
	text := page(t, "TESTING.md")
	var marks, switches, daggers []string
	for _, heading := range []string{"## Faults", "## Recovery verdicts", "## Rare branches"} {
		for _, row := range rows(section(t, text, heading)) {
			for _, m := range markOrSwitch.FindAllStringSubmatch(row, -1) {
				if m[1] == "switch" {
					continue
				}
				marks = append(marks, m[1]+" "+m[2])
				if strings.Contains(row, "†") {
					daggers = append(daggers, m[1]+" "+m[2])
				}
			}
		}
	}
	for _, m := range markOrSwitch.FindAllStringSubmatch(text, -1) {
		if m[1] == "switch" {
			switches = append(switches, m[2])
		}
	}
	var names, unreachable []string
	for _, e := range registry() {
		names = append(names, e.name)
	}
	for name := range Unreachable {
		unreachable = append(unreachable, name)
	}
	wantSame(t, "marks", marks, names)
	wantSame(t, "marks with a †", daggers, unreachable)
	wantSame(t, "switches", switches, switchNames[:])

	faults := section(t, text, "## Faults")
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		id, _, _ := strings.Cut(f.String(), ".")
		if !regexp.MustCompile("(?m)^\\| " + id + " \\|.*`disk " + regexp.QuoteMeta(f.String()) + "`").MatchString(faults) {
			t.Errorf("faults: %v is not in a row of %s", f, id)
		}
	}
}

// Each fault of the catalogue has at least one mark, and each checker a row.
func TestPageCoversTheCatalogue(t *testing.T) {
	text := page(t, "TESTING.md")
	faults := section(t, text, "## Faults")
	for id := range faultMarks {
		if !regexp.MustCompile("(?m)^\\| " + id + " \\|.*`(disk|sim) ").MatchString(faults) {
			t.Errorf("faults: no mark of %s", id)
		}
	}
	checkers := section(t, text, "## Checkers")
	for _, k := range model.Checks {
		if !strings.Contains(checkers, "\n| "+k.String()+" |") {
			t.Errorf("checkers: no row of %v", k)
		}
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bw\.fail\("([A-Za-z0-9]+)"`).FindAllSubmatch(b, -1) {
			if id := string(m[1]); !strings.Contains(checkers, "| "+id+" |") && !strings.Contains(checkers, "| `"+id+"` |") {
				t.Errorf("checkers: no row of %s, which %s reports", id, name)
			}
		}
	}
}

func TestPageListsEventsAndProfiles(t *testing.T) {
	text := page(t, "TESTING.md")
	wantSame(t, "events", first(section(t, text, "### Events")), kindNames[:])
	wantSame(t, "profiles", first(section(t, text, "### Profiles")), profileNames[:])
}

// goNames returns the functions and package-level names of the module's Go files, by file, and every
// test function.
func goNames(t *testing.T) (files map[string]string, tests map[string]bool) {
	t.Helper()
	files, tests = map[string]string{}, map[string]bool{}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		files[name] = string(b)
		for _, m := range test.FindAllSubmatch(b, -1) {
			tests[string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, tests
}

// Whatever a document names is there: files, the functions in them, tests.
func TestPagesNameWhatExists(t *testing.T) {
	files, tests := goNames(t)
	for _, name := range []string{"TESTING.md", "ARCHITECTURE.md", "README.md"} {
		text := page(t, name)
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			file, what, _ := strings.Cut(m[1], " ")
			switch {
			case strings.HasPrefix(m[1], "Test") && !strings.Contains(m[1], "."):
				if !tests[m[1]] {
					t.Errorf("%s: there is no test %s", name, m[1])
				}
			case strings.HasSuffix(file, ".go") && strings.Contains(file, "/"):
				body, ok := files[file]
				if !ok {
					t.Errorf("%s: there is no file %s", name, file)
				} else if what != "" && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+what+`\(`).MatchString(body) {
					t.Errorf("%s: there is no function %s in %s", name, what, file)
				}
			}
		}
	}
}

// Ids of failures that users of other logs reported: in the name of a test, of a sub-test, or in a kept
// schedule; and in the page.
var (
	reported       = regexp.MustCompile(`\b([A-Z]{2})-(\d+)\b`)
	reportedTest   = regexp.MustCompile(`(?m)^func Test([A-Z]{2})(\d+)[A-Z]\w*\(`)
	reportedByName = regexp.MustCompile(`(?m)(?:Run\("|name: +"|^# )([A-Z]{2})-(\d+) `)
)

// Each id of the table has a test, and each test has its row.
func TestPageListsFailuresOfOtherLogs(t *testing.T) {
	var listed, tested []string
	for _, row := range rows(section(t, page(t, "TESTING.md"), "## Failures of other logs"))[1:] {
		cells := strings.Split(row, "|")
		if len(cells) != 5 {
			t.Fatalf("%d cells in %s", len(cells), row)
		}
		class := strings.Fields(cells[1])[0]
		for _, m := range reported.FindAllStringSubmatch(cells[3], -1) {
			if m[1] != class {
				t.Errorf("%s stands in the row of %s", m[0], class)
			}
			listed = append(listed, m[0])
		}
	}
	seen := map[string]bool{}
	add := func(m []string) {
		if id := m[1] + "-" + m[2]; !seen[id] {
			seen[id] = true
			tested = append(tested, id)
		}
	}
	files, _ := goNames(t)
	for name, body := range files {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range reportedTest.FindAllStringSubmatch(body, -1) {
			add(m)
		}
		for _, m := range reportedByName.FindAllStringSubmatch(body, -1) {
			add(m)
		}
	}
	kept, err := filepath.Glob("testdata/schedules/*.schedule")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reportedByName.FindAllStringSubmatch(string(b), -1) {
			add(m)
		}
	}
	wantSame(t, "failures of other logs", listed, tested)
	if len(seen) < 70 {
		t.Errorf("only %d ids", len(seen))
	}
}

// The folders of ARCHITECTURE.md are those that hold code.
func TestPageListsFolders(t *testing.T) {
	files, _ := goNames(t)
	var folders []string
	for name := range files {
		folder, _ := filepath.Split(name)
		folder = strings.TrimSuffix(folder, "/")
		if folder == "" {
			folder = "."
		}
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	listed := first(section(t, page(t, "ARCHITECTURE.md"), "## Where things are"))
	listed = slices.DeleteFunc(listed, func(folder string) bool { return folder == "docs" })
	wantSame(t, "folders", listed, folders)
}
