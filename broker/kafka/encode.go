package kafka

import "encoding/binary"

// encoder writes the primitive types of the protocol, for the two answers that are not encoded by the
// codec: it would copy every batch.
type encoder struct {
	b        []byte
	flexible bool
}

func (e *encoder) int16(v int16) { e.b = binary.BigEndian.AppendUint16(e.b, uint16(v)) }
func (e *encoder) int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

// array writes the number of elements; -1 stands for null.
func (e *encoder) array(n int) {
	if e.flexible {
		e.b = binary.AppendUvarint(e.b, uint64(n+1))
		return
	}
	e.int32(int32(n))
}

// length writes the length of a string.
func (e *encoder) length(n int) {
	if e.flexible {
		e.b = binary.AppendUvarint(e.b, uint64(n+1))
		return
	}
	e.int16(int16(n))
}

func (e *encoder) string(s []byte) {
	e.length(len(s))
	e.b = append(e.b, s...)
}

// nullableText writes an error's text, or null.
func (e *encoder) nullableText(err error) {
	if err == nil {
		e.length(-1)
		return
	}
	s := err.Error()
	if len(s) > textBytesMax {
		s = s[:textBytesMax]
	}
	e.length(len(s))
	e.b = append(e.b, s...)
}

// textBytesMax is how much of an error's text is told.
const textBytesMax = 1024

// tags writes that there are no tagged fields.
func (e *encoder) tags() {
	if e.flexible {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) text(s string) {
	e.length(len(s))
	e.b = append(e.b, s...)
}
