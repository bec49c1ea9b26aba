package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fileBytesMax bounds a file of settings; one that is longer is something else.
const fileBytesMax = 1 << 20

// configFile is a file of settings, as far as it was understood.
type configFile struct {
	path   string
	values map[string]fileValue // by key
}

// fileValue is the value of a key in a file, and where it stands.
type fileValue struct {
	text string
	line int
}

// fileError is what is wrong with a file, and where.
type fileError struct {
	path     string
	line     int
	key      string
	expected string
	found    string
}

func (e *fileError) Error() string {
	return fmt.Sprintf("%s, line %d, %s: expected %s, found %s", e.path, e.line, e.key, e.expected, e.found)
}

// readConfigFile reads a file of settings. Each key is known, there once, and of the right type; the
// file as a whole is valid over the defaults.
func readConfigFile(path string) (*configFile, error) {
	b, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	return parseConfig(path, b)
}

func parseConfig(path string, b []byte) (*configFile, error) {
	f := &configFile{path: path, values: map[string]fileValue{}}
	d := yaml.NewDecoder(bytes.NewReader(b))
	var root, more yaml.Node
	switch err := d.Decode(&root); {
	case errors.Is(err, io.EOF): // nothing in it: nothing is set
		return f, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %s; expected YAML", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, f.bad(&more, "the file", "one YAML document", "another one behind it")
	}
	set := defaults()
	if err := f.section(root.Content[0], "", set); err != nil {
		return nil, err
	}
	if err := set.Validate(); err != nil {
		return nil, explained(err, f.source)
	}
	return f, nil
}

func readSmall(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, fileBytesMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > fileBytesMax:
		return nil, fmt.Errorf("%s: expected a file of settings of at most %d bytes, found a longer one", path, fileBytesMax)
	}
	return b, nil
}

func (f *configFile) bad(n *yaml.Node, key, expected, found string) error {
	return &fileError{path: f.path, line: max(n.Line, 1), key: key, expected: expected, found: found}
}

// source says where a key has its value from, if it is in the file.
func (f *configFile) source(name string) (string, bool) {
	v, ok := f.values[name]
	if !ok {
		return "", false
	}
	return fmt.Sprintf("%s, line %d", f.path, v.line), true
}

// section reads a mapping: the whole file, or a section of it.
func (f *configFile) section(n *yaml.Node, name string, set *nodeSettings) error {
	what, prefix := "section "+name, name+"."
	if name == "" {
		what, prefix = "the file", ""
	}
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return f.bad(n, what, "keys and values", found(n))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		key := prefix + at.Value
		if at.Kind != yaml.ScalarNode || at.Tag != "!!str" {
			return f.bad(at, what, "the name of a key", found(at))
		}
		for j := 0; j < i; j += 2 {
			if n.Content[j].Value == at.Value {
				return f.bad(at, key, "each key once", fmt.Sprintf("it in line %d, too", n.Content[j].Line))
			}
		}
		if name == "" && isSection(at.Value) {
			if err := f.section(value, at.Value, set); err != nil {
				return err
			}
			continue
		}
		if err := f.value(key, at, value, set); err != nil {
			return err
		}
	}
	return nil
}

func (f *configFile) value(name string, at, value *yaml.Node, set *nodeSettings) error {
	k := keyNamed(name)
	if k == nil || strings.Contains(at.Value, ".") {
		return f.bad(at, name, "a key that there is"+nearest(name), "an unknown one")
	}
	text, ok := k.yamlText(value)
	if ok {
		ok = k.set(set, text) == nil
	}
	if !ok {
		return f.bad(value, name, k.expected(), found(value))
	}
	f.values[name] = fileValue{text: text, line: value.Line}
	return nil
}

// yamlText returns the value of a node as set takes it, if it is of the type of the key.
func (k *key) yamlText(n *yaml.Node) (text string, ok bool) {
	if k.expected() == "a list of strings" {
		if n.Kind != yaml.SequenceNode {
			return "", false
		}
		var all []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || item.Tag != "!!str" || item.Value == "" || strings.Contains(item.Value, ",") {
				return "", false
			}
			all = append(all, item.Value)
		}
		return strings.Join(all, ","), true
	}
	if n.Kind != yaml.ScalarNode {
		return "", false
	}
	switch k.expected() {
	case "true or false":
		return n.Value, n.Tag == "!!bool"
	case "a whole number":
		return n.Value, n.Tag == "!!int"
	case "a string", "on_commit, periodic or none":
		return n.Value, n.Tag == "!!str"
	}
	return n.Value, n.Tag == "!!int" || n.Tag == "!!str" // bytes and durations
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func isSection(name string) bool {
	for _, s := range sections {
		if s == name {
			return true
		}
	}
	return false
}

// found says what a node is.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if isNull(n) {
		return "nothing"
	}
	value := n.Value
	if len(value) > 80 {
		value = value[:80] + "..."
	}
	switch n.Tag {
	case "!!str":
		return strconv.Quote(value)
	case "!!int", "!!bool", "!!float":
		return value
	}
	return strconv.Quote(value) + " (" + n.Tag + ")"
}

// nearest proposes a key for one that does not exist.
func nearest(name string) string {
	best, distance := "", 1+len(name)/3
	for i := range table {
		if d := editDistance(name, table[i].name); d < distance {
			best, distance = table[i].name, d
		}
		if lastPart(table[i].name) == lastPart(name) { // in another section
			best, distance = table[i].name, 0
		}
	}
	if best == "" {
		return ""
	}
	if section, key, ok := strings.Cut(best, "."); ok {
		return fmt.Sprintf(" (%s in section %s?)", key, section)
	}
	return " (" + best + "?)"
}

func lastPart(name string) string { return name[1+strings.LastIndexByte(name, '.'):] }

// editDistance counts the letters to add, remove or change to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
