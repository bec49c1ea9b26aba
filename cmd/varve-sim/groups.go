package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// failureGroup is the violations that look alike: they have one signature.
type failureGroup struct {
	Count  uint64
	Lowest *violation
}

// groups are failures by signature.
type groups map[string]*failureGroup

// add counts n violations that look alike, of which v has the lowest seed.
func (g groups) add(v *violation, n uint64) {
	sign := signature(v.Check, v.Text)
	have := g[sign]
	if have == nil {
		g[sign] = &failureGroup{n, v}
		return
	}
	have.Count += n
	if v.Seed < have.Lowest.Seed {
		have.Lowest = v
	}
}

// list returns the groups by their lowest seed.
func (g groups) list() []*failureGroup {
	return slices.SortedFunc(maps.Values(g), func(a, b *failureGroup) int { return cmp.Compare(a.Lowest.Seed, b.Lowest.Seed) })
}

// signature is what two failures of one cause have in common: the property, and the message without
// what differs from run to run. A word that begins with a digit, or is a hexadecimal number with a
// digit in it, counts as a number.
func signature(check, text string) string {
	const bytesMax = 300
	var b strings.Builder
	b.WriteString(check)
	b.WriteString(": ")
	line := headline(text)
	for line != "" && b.Len() < bytesMax {
		n := 0
		for n < len(line) && isWord(line[n]) {
			n++
		}
		switch word := line[:n]; {
		case n == 0:
			b.WriteByte(line[0])
			n = 1
		case isNumber(word):
			b.WriteByte('#')
		default:
			b.WriteString(word)
		}
		line = line[n:]
	}
	return b.String()
}

// headline is a message without its details.
func headline(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(word string) bool {
	return isDigit(word[0]) || strings.ContainsAny(word, "0123456789") && strings.Trim(word, "0123456789abcdef") == ""
}
