package client

import (
	"errors"
	"fmt"
	"strings"
)

// outline follows values of the protocol as they go by: only their types and lengths.
type outline struct {
	longest int64 // text that is allowed
	skip    int64 // bytes of a text, with the end of its line
	kind    byte  // of the line that goes by; 0: at its begin
	number  int64 // in the line; below 0: none
	line    int   // its length
	missing int64 // values until the outermost one is whole
	whole   int64 // outermost values that went by
}

const lineMax = 64 << 10

// follow takes the next bytes. left is how many may still come behind them. The error says what is
// out of bounds.
func (o *outline) follow(b []byte, left int64) error {
	for len(b) > 0 {
		if o.skip > 0 {
			n := min(o.skip, int64(len(b)))
			o.skip -= n
			b = b[n:]
			continue
		}
		if err := o.next(b[0], left+int64(len(b))); err != nil {
			return err
		}
		b = b[1:]
	}
	return nil
}

// next takes the next byte of a line.
func (o *outline) next(b byte, left int64) error {
	switch {
	case o.kind == 0:
		o.kind, o.number, o.line = b, 0, 0
	case b == '\n':
		kind := o.kind
		o.kind = 0
		return o.value(kind, left)
	case b != '\r' && strings.IndexByte(lengths, o.kind) >= 0:
		if err := o.digit(b); err != nil {
			return err
		}
	}
	if o.line++; o.line > lineMax {
		return fmt.Errorf("a line of more than %d bytes", lineMax)
	}
	return nil
}

// lengths are the kinds of lines that hold a length.
const lengths = "$=!*~>%|"

// digit takes a digit of a length: of a number from 0 on, or of -1, which says that there is nothing.
func (o *outline) digit(b byte) error {
	switch {
	case b >= '0' && b <= '9' && o.number >= 0 && o.number < 1<<50:
		o.number = o.number*10 + int64(b-'0')
	case b == '-' && o.line == 1:
		o.number = -1
	case b == '1' && o.line == 2 && o.number == -1:
	default:
		return fmt.Errorf("a length with %q in it, or too long", b)
	}
	return nil
}

// value judges a line, which is a value or begins one.
func (o *outline) value(kind byte, left int64) error {
	if o.number < 0 && o.line != len("$-1\r") {
		return errors.New("a length of -")
	}
	inside := int64(0)
	switch kind {
	case '$', '=', '!':
		if o.number > o.longest || o.number > left {
			return fmt.Errorf("a text of %d bytes where %d are allowed", o.number, min(o.longest, left))
		}
		if o.number >= 0 {
			o.skip = o.number + 2
		}
	case '*', '~', '>':
		inside = o.number
	case '%', '|':
		inside = 2 * o.number
	}
	if inside > max(left, 0) { // the guard itself counts the bytes that came
		return fmt.Errorf("a list of %d values in %d bytes", inside, left)
	}
	if o.missing == 0 {
		o.missing = 1
	}
	if o.missing += max(inside, 0) - 1; o.missing == 0 {
		o.whole++
	}
	return nil
}
