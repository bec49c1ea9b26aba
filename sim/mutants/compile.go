package mutants

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A bug in one package makes the go command compile each package that imports it, because its archive
// is another one. Nearly always they would come out as they were: all that a compiler sees of an import
// is what it exports, and a bug inside a function changes nothing of that. So the go command is given,
// as its -toolexec, a program that calls Tool, which keeps what was compiled and compares what imports
// export. The linker compares it too: what does not fit together is refused.

// Tool does what the command line of a tool of the go command says. What the compiler made of the same
// files over imports that export the same is taken from the folder kept. It returns the exit code.
func Tool(kept string, line []string, out, errOut io.Writer) int {
	c, err := readCompile(line)
	switch {
	case err != nil:
		fmt.Fprintln(errOut, err)
		return 1
	case c != nil && c.take(kept):
		return 0
	}
	cmd := exec.Command(line[0], line[1:]...) //nolint:gosec // it is the go command that says what to run
	cmd.Stdout, cmd.Stderr = out, errOut
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		fmt.Fprintln(errOut, err)
		return 1
	}
	if c != nil {
		c.keep(kept)
	}
	return 0
}

// compile is one call of the compiler.
type compile struct {
	to, id string // the archive and what identifies the build in it
	key    string // of all that it depends on
}

// Flags of the compiler whose values say where files lie, or which build it is, and not what is
// compiled. Those of any other flag are part of the key.
const (
	flagTo      = "-o"
	flagID      = "-buildid"
	flagImports = "-importcfg"
	flagTrim    = "-trimpath"
)

// readFlags are those of which the value is a file that is read: no package here has such a thing.
var readFlags = []string{"-embedcfg", "-symabis", "-asmhdr", "-pgoprofile", "-coveragecfg", "-linkobj"}

// readCompile understands a call of the compiler that makes an archive of Go files alone; nil is
// anything else.
func readCompile(line []string) (*compile, error) {
	if len(line) == 0 {
		return nil, errors.New("no tool: expected the command line of one")
	}
	if filepath.Base(line[0]) != "compile" {
		return nil, nil
	}
	c, key, imports := &compile{}, sha256.New(), ""
	for i := 1; i < len(line); i++ {
		word := line[i]
		name, _, _ := strings.Cut(word, "=")
		for _, flag := range readFlags {
			if name == flag {
				return nil, nil
			}
		}
		value := map[string]*string{flagTo: &c.to, flagID: &c.id, flagImports: &imports, flagTrim: new(string)}[word]
		switch {
		case value != nil && i+1 < len(line):
			i++
			*value = line[i]
			continue
		case strings.HasSuffix(word, ".go"):
			text, err := os.ReadFile(word)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(key, "%q %x\n", word, sha256.Sum256(text))
			continue
		}
		fmt.Fprintf(key, "%q\n", word)
	}
	if c.to == "" || c.id == "" || imports == "" {
		return nil, nil
	}
	if err := addImports(key, imports); err != nil {
		return nil, err
	}
	c.key = hex.EncodeToString(key.Sum(nil))
	return c, nil
}

// addImports adds to a key what each package of an import configuration exports.
func addImports(key io.Writer, config string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, file, ok := strings.Cut(line, "=")
		if !ok || !strings.HasPrefix(line, "packagefile ") {
			fmt.Fprintf(key, "%q\n", line)
			continue
		}
		what, err := exported(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(key, "%q %x\n", name, sha256.Sum256(what))
	}
	return nil
}

var buildID = regexp.MustCompile(`(?m)^build id ".*"$`)

// The head of an archive, and of the member in it that comes first: what the package exports.
const (
	archiveHead  = "!<arch>\n"
	exportsName  = "__.PKGDEF"
	memberBytes  = 60
	memberSizeAt = 48
)

// exported returns what a compiled package exports, without what identifies the build.
func exported(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	head := make([]byte, len(archiveHead)+memberBytes)
	if _, err := io.ReadFull(f, head); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	member := head[len(archiveHead):]
	size, err := strconv.ParseInt(strings.TrimSpace(string(member[memberSizeAt:memberSizeAt+10])), 10, 64)
	if err != nil || !bytes.HasPrefix(head, []byte(archiveHead)) || !bytes.HasPrefix(member, []byte(exportsName+" ")) {
		return nil, fmt.Errorf("%s: expected an archive that begins with %s, found %q", file, exportsName, head)
	}
	what, err := io.ReadAll(io.LimitReader(f, size))
	if err != nil {
		return nil, err
	}
	return buildID.ReplaceAll(what, nil), nil
}

// take puts the archive that was kept under the key where this call is to put its own, and reports
// whether there is one.
func (c *compile) take(kept string) bool {
	name := filepath.Join(kept, c.key)
	id, err := os.ReadFile(name + ".id")
	if err != nil || len(id) != len(c.id) {
		return false
	}
	archive, err := os.ReadFile(name + ".a")
	if err != nil {
		return false
	}
	return os.WriteFile(c.to, bytes.ReplaceAll(archive, id, []byte(c.id)), 0o666) == nil //nolint:gosec // as the compiler does
}

// keep keeps the archive that was made. That it could not is no error: it will be made again.
func (c *compile) keep(kept string) {
	archive, err := os.ReadFile(c.to)
	if err != nil {
		return
	}
	name := filepath.Join(kept, c.key)
	for _, x := range []struct {
		ext  string
		data []byte
	}{{".a", archive}, {".id", []byte(c.id)}} { // in this order: who finds the second finds the first
		part, err := os.CreateTemp(kept, "part-")
		if err != nil {
			return
		}
		_, err = part.Write(x.data)
		if errors.Join(err, part.Close()) != nil || os.Rename(part.Name(), name+x.ext) != nil {
			return
		}
	}
}
