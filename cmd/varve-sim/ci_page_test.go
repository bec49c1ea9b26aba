package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

var fenced = regexp.MustCompile("(?ms)^```(yaml)?\n(.*?)^```$")

// scripts returns what the steps of a workflow run.
func scripts(t *testing.T, node *yaml.Node) []string {
	t.Helper()
	var all []string
	for i, n := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && n.Value == "run" {
			all = append(all, node.Content[i+1].Value)
		}
		all = append(all, scripts(t, n)...)
	}
	return all
}

var (
	expression = regexp.MustCompile(`\$\{\{[^}]*\}\}`)
	separator  = regexp.MustCompile(`\n|;|&&|\||\$\(|\)|\bdo `)
)

// commandsOf returns the words of the commands in a script that are ours or the go tool's.
func commandsOf(script string) [][]string {
	script = expression.ReplaceAllString(script, "1")
	var all [][]string
	for _, line := range separator.Split(script, -1) {
		words := strings.Fields(line)
		if len(words) > 0 && (words[0] == "go" || strings.Contains(words[0], "varve-sim")) {
			all = append(all, words)
		}
	}
	return all
}

// The commands of docs/ci.md are understood: those of this program by its parser, those of the go tool
// by its help; each program that a step runs was built by a step before.
func TestCIPage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	ours, files := map[string]int{}, 0
	for _, block := range fenced.FindAllSubmatch(text, -1) {
		run := []string{string(block[2])}
		if len(block[1]) > 0 {
			files++
			var root yaml.Node
			if err := yaml.Unmarshal(block[2], &root); err != nil {
				t.Fatalf("%v in\n%s", err, block[2])
			}
			run = scripts(t, &root)
		}
		for _, script := range run {
			for _, words := range commandsOf(script) {
				if words[0] == "go" {
					understoodByGo(t, words)
					continue
				}
				ours[words[1]]++
				if problem := understood(words[1:]); problem != nil {
					t.Errorf("%q: %v", strings.Join(words, " "), problem)
				}
			}
		}
	}
	if files != 2 || ours["run"] < 5 || ours["meta"] != 1 || ours["mutants"] != 1 || ours["exhaust"] != 1 {
		t.Errorf("%d files, commands %v", files, ours)
	}
	for _, bad := range []string{"run --seeds 5 --shards 1/2", "run", "walk", "run --seeds 5 --shard 3/2", "meta --seeds x"} {
		if understood(strings.Fields(bad)) == nil {
			t.Errorf("%q is understood", bad)
		}
	}
}

// understood parses a command line and carries nothing out.
func understood(words []string) error {
	for i, w := range words { // the shell's
		if strings.HasPrefix(w, ">") {
			words = words[:i]
			break
		}
	}
	parser, err := kong.New(new(commands), kong.Name("varve-sim"), kong.Exit(func(int) {}))
	if err != nil {
		return err
	}
	_, err = parser.Parse(words)
	return err
}

func understoodByGo(t *testing.T, words []string) {
	t.Helper()
	var help []byte
	for _, topic := range []string{"build", "testflag", words[1]} {
		text, err := exec.CommandContext(t.Context(), "go", "help", topic).Output()
		if err != nil {
			t.Fatalf("%q: go help %s: %v", strings.Join(words, " "), topic, err)
		}
		help = append(help, text...)
	}
	for _, w := range words[2:] {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if strings.HasPrefix(w, "-") && !regexp.MustCompile(`(?m)(^|[\s\[])-`+regexp.QuoteMeta(name)+`\b`).Match(help) {
			t.Errorf("%q: go %s has no flag %s", strings.Join(words, " "), words[1], w)
		}
		if strings.HasPrefix(w, "./") && !strings.Contains(w, "...") {
			if _, err := os.Stat(filepath.Join("..", "..", w)); err != nil {
				t.Errorf("%q: %v", strings.Join(words, " "), err)
			}
		}
	}
}
