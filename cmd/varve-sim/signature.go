package main

import "strings"

// signature is what two failures of one cause have in common: the property, and the message without
// what differs from run to run. A word that begins with a digit, or is a hexadecimal number with a
// digit in it, counts as a number.
func signature(check, text string) string {
	var b strings.Builder
	b.WriteString(check)
	b.WriteString(": ")
	line, _, _ := strings.Cut(text, "\n")
	for line != "" {
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

func isWord(c byte) bool {
	return isDigit(c) || c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(word string) bool {
	return isDigit(word[0]) || strings.ContainsAny(word, "0123456789") && strings.Trim(word, "0123456789abcdef") == ""
}
