package topics

import "fmt"

// NameBytesMax bounds a topic's name: with it a directory's name stays within 255 bytes.
const NameBytesMax = 249

// NameError says why a text cannot name a topic.
type NameError struct {
	Name string // shortened
	Why  string
}

func (e *NameError) Error() string { return fmt.Sprintf("topics: name %q: %s", e.Name, e.Why) }

// CheckName says whether a text may name a topic: what it names becomes a directory, a prefix of keys in
// a bucket and part of a key in a server, so that only what is harmless in all of them gets through. The
// error is a *NameError.
func CheckName(name string) error {
	switch {
	case name == "":
		return &NameError{Why: "is empty"}
	case len(name) > NameBytesMax:
		return &NameError{name[:32] + "...", fmt.Sprintf("has %d bytes, at most %d may be", len(name), NameBytesMax)}
	case name == "." || name == "..":
		return &NameError{name, "is a directory of its own kind"}
	}
	for i := range len(name) {
		if !nameByte(name[i]) {
			short := name
			if len(short) > 32 {
				short = short[:32] + "..."
			}
			return &NameError{short, fmt.Sprintf("byte %d is %q: letters, digits, dot, underscore and dash may be", i, name[i])}
		}
	}
	return nil
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}
