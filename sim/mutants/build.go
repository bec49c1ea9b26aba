package mutants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Lean is the tag of programs that only measure a mutant.
const Lean = "mutant"

// Build builds a command of the module with the bug in it and returns the program, a file in the
// folder dir. root is the folder of the module. A nil mutant builds the command as it is. With the tag
// Lean it goes without what measuring a mutant does not need: those files have the constraint !mutant.
func (m *Mutant) Build(ctx context.Context, root, command, dir string, tags ...string) (program string, err error) {
	name, replace := "none", map[string]string{}
	if m != nil {
		name = m.Name
		changed, err := m.Apply(os.DirFS(root))
		if err != nil {
			return "", err
		}
		for file, text := range changed {
			to := filepath.Join(dir, name+"-"+strconv.Itoa(len(replace))+".go")
			if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
				return "", err
			}
			replace[filepath.Join(root, filepath.FromSlash(file))] = to
		}
	}
	overlay, err := json.Marshal(struct{ Replace map[string]string }{replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, name+".json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, name+".exe")
	// Nobody debugs the program: without symbol tables it is made in two thirds of the time.
	build := exec.CommandContext(ctx, "go", "build", "-overlay="+list, "-tags="+strings.Join(tags, ","), "-buildvcs=false",
		"-gcflags=./...=-dwarf=false", "-ldflags=-s -w", "-o", program, command)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("does not build: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	return program, nil
}

// Root returns the folder of the module that the working directory lies in.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("no module here: %w; run it inside the source tree", err)
	}
	root := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(Dir))); err != nil {
		return "", fmt.Errorf("no mutants in this module: %w; run it inside the source tree", err)
	}
	return root, nil
}
