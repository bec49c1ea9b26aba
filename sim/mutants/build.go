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
	"time"
)

// Lean is the tag of programs that only measure a mutant.
const Lean = "mutant"

// Builder builds a command of a module with bugs in it.
type Builder struct {
	Root    string   // the folder of the module
	Command string   // such as ./cmd/varve-sim
	Dir     string   // an empty folder for what is built
	Tags    []string // Lean: without what measuring a mutant does not need; those files have the constraint !mutant
	Tool    []string // a command that calls the Tool function with a folder to keep things in; nil: compile all anew
}

// garbage is how much a compiler may let pile up, in percent of what it needs, before it collects it: one
// that runs for a second has better things to do.
const garbage = "GOGC=400"

// Build builds the command with a bug in it, and returns the program, a file, and the processor time that
// it took. A nil mutant builds the command as it is.
func (b *Builder) Build(ctx context.Context, m *Mutant) (program string, cpu time.Duration, err error) {
	name, replace := "none", map[string]string{}
	if m != nil {
		name = m.Name
		changed, err := m.sameLines().Apply(os.DirFS(b.Root))
		if err != nil {
			return "", 0, err
		}
		for file, text := range changed {
			to := filepath.Join(b.Dir, name+"-"+strconv.Itoa(len(replace))+".go")
			if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
				return "", 0, err
			}
			replace[filepath.Join(b.Root, filepath.FromSlash(file))] = to
		}
	}
	overlay, err := json.Marshal(struct{ Replace map[string]string }{replace})
	if err != nil {
		return "", 0, err
	}
	list := filepath.Join(b.Dir, name+".json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", 0, err
	}
	program = filepath.Join(b.Dir, name+".exe")
	// Nobody debugs the program: without symbol tables it is made in two thirds of the time.
	build := exec.CommandContext(ctx, "go", "build", "-overlay="+list, "-tags="+strings.Join(b.Tags, ","), "-buildvcs=false",
		"-toolexec="+quoted(b.Tool), "-gcflags=./...=-dwarf=false", "-ldflags=-s -w", "-o", program, b.Command)
	build.Dir = b.Root
	build.Env = append(build.Environ(), garbage)
	out, err := build.CombinedOutput()
	cpu = Used(build)
	if err != nil {
		return "", cpu, fmt.Errorf("does not build: %w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	return program, cpu, nil
}

// quoted are words as the go command takes them apart again.
func quoted(words []string) string {
	var all []string
	for _, w := range words {
		mark := "'"
		if strings.Contains(w, mark) {
			mark = `"`
		}
		all = append(all, mark+w+mark)
	}
	return strings.Join(all, " ")
}

// Used is the processor time that a command has used which has ended, and all that it started and
// waited for.
func Used(c *exec.Cmd) time.Duration {
	if c.ProcessState == nil {
		return 0
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
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
