package valkey

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"varve/core/segment"
)

// ID is the id of a stream entry: <generation>-<end offset>. The marker of a generation has End 0.
type ID struct {
	Generation uint64
	End        segment.Offset
}

// IDBytesMax bounds the text of an id.
const IDBytesMax = 41

// IDMax is the greatest id that an entry of ours can have.
var IDMax = ID{Generation: math.MaxUint64, End: math.MaxInt64}

// Append appends the text of the id.
func (id ID) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, id.Generation, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, uint64(id.End), 10)
}

// String returns the text of the id.
func (id ID) String() string { return string(id.Append(nil)) }

// Less reports whether the server would put an entry of this id before the other.
func (id ID) Less(other ID) bool {
	return id.Generation < other.Generation ||
		id.Generation == other.Generation && uint64(id.End) < uint64(other.End)
}

// IsZero reports whether this is the id of no entry: a server never gives out 0-0.
func (id ID) IsZero() bool { return id == ID{} }

// ParseID is the inverse of Append. It accepts what a server writes, and nothing else: two numbers of
// 64 bits without signs or leading zeros, the second of which is an offset.
func ParseID(b []byte) (ID, bool) {
	var n [2]uint64
	part, digits := 0, 0
	for _, c := range b {
		switch {
		case c == '-' && part == 0 && digits > 0:
			part, digits = 1, 0
			continue
		case c < '0' || c > '9' || digits > 0 && n[part] == 0:
			return ID{}, false
		}
		d := uint64(c - '0')
		if n[part] > (math.MaxUint64-d)/10 {
			return ID{}, false
		}
		n[part] = n[part]*10 + d
		digits++
	}
	if part != 1 || digits == 0 || n[1] > math.MaxInt64 {
		return ID{}, false
	}
	return ID{n[0], segment.Offset(n[1])}, true
}

// ErrName says that a log cannot have a stream under this name.
var ErrName = errors.New("valkey: bad log name")

// NameBytesMax bounds the name of a log.
const NameBytesMax = 249

// Key returns the key of a log's stream. The braces make it the hash tag of a cluster, so that all
// keys of one log are on one shard.
func Key(name string) (string, error) {
	bad := ""
	switch {
	case name == "":
		bad = "it is empty"
	case len(name) > NameBytesMax:
		bad = fmt.Sprintf("it has %d bytes, at most %d fit", len(name), NameBytesMax)
		name = name[:32] + "..."
	case name == "." || name == "..":
		bad = "it names a folder"
	}
	if at := strings.IndexFunc(name, foreign); bad == "" && at >= 0 {
		bad = fmt.Sprintf("byte %d is %q", at, name[at])
	}
	if bad != "" {
		return "", fmt.Errorf("%w %q: %s; letters, digits, '.', '_' and '-' are allowed", ErrName, name, bad)
	}
	return "varve:{" + name + "}", nil
}

func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}
