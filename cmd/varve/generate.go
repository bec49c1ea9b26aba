package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Generated records: record i is a pure function of i and the size. It begins with i in hex digits,
// 16 of them or as many as the size has room for; what follows is printable and depends on i.
const generatedDigits = 16

// generate fills value with record i.
func generate(value []byte, i uint64) {
	const hex = "0123456789abcdef"
	digits := min(generatedDigits, len(value))
	for d, v := digits-1, i; d >= 0; d-- {
		value[d] = hex[v&15]
		v >>= 4
	}
	rest, state := value[digits:], i
	var word [8]byte
	for len(rest) > 0 {
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		binary.LittleEndian.PutUint64(word[:], z&0x0f0f0f0f0f0f0f0f|0x6060606060606060)
		rest = rest[copy(rest, word[:]):]
	}
}

// generatable reports whether every i below end fits into values of a size.
func generatable(size int, end uint64) error {
	if size >= generatedDigits || end == 0 || size > 0 && (end-1)>>(4*size) == 0 {
		return nil
	}
	return fmt.Errorf("records of %d bytes cannot hold the number %d: want --size of %d or more", size, end-1, generatedDigits)
}

// generated returns the i of a generated value; scratch is reused memory.
func generated(value, scratch []byte) (i uint64, _ []byte, err error) {
	digits := min(generatedDigits, len(value))
	for _, c := range value[:digits] {
		switch {
		case '0' <= c && c <= '9':
			i = i<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			i = i<<4 | uint64(c-'a'+10)
		default:
			return 0, scratch, fmt.Errorf("expected a generated value, found %.32q", value)
		}
	}
	if cap(scratch) < len(value) {
		scratch = make([]byte, len(value))
	}
	scratch = scratch[:len(value)]
	generate(scratch, i)
	if digits == 0 || !bytes.Equal(scratch, value) {
		return 0, scratch, fmt.Errorf("expected generated value %d, %.32q, found %.32q", i, scratch, value)
	}
	return i, scratch, nil
}
