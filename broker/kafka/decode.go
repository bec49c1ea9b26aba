package kafka

import "encoding/binary"

// decoder reads the primitive types of the protocol off a request. Behind the end it reads zeros and
// says that the request is bad: who decodes looks once, at the end.
type decoder struct {
	b        []byte
	bad      bool
	flexible bool // lengths are varints, and tags may follow everywhere
}

// take returns the next bytes, nil and bad if they are not there.
func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) int16() int16 {
	if v := d.take(2); v != nil {
		return int16(binary.BigEndian.Uint16(v))
	}
	return 0
}

func (d *decoder) int32() int32 {
	if v := d.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (d *decoder) uvarint() uint32 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > 1<<32-1 {
		d.take(-1)
		return 0
	}
	d.b = d.b[n:]
	return uint32(v)
}

// length reads what comes before a string (wide false), bytes or an array; -1 stands for null.
func (d *decoder) length(wide bool) int {
	switch {
	case d.flexible:
		return int(d.uvarint()) - 1
	case wide:
		return int(d.int32())
	}
	return int(d.int16())
}

// string reads a string that may be null; it is a part of the request.
func (d *decoder) string() []byte { return d.span(d.length(false)) }

// bytes reads bytes that may be null; they are a part of the request.
func (d *decoder) bytes() []byte { return d.span(d.length(true)) }

func (d *decoder) span(n int) []byte {
	if n == -1 {
		return nil
	}
	return d.take(n)
}

// array reads the number of an array's elements, each of which has at least min bytes. Null is none.
func (d *decoder) array(minimum int) int {
	n := d.length(true)
	if n == -1 {
		return 0
	}
	if n < 0 || n > len(d.b)/minimum {
		d.take(-1)
		return 0
	}
	return n
}

// tags passes over tagged fields.
func (d *decoder) tags() {
	if !d.flexible {
		return
	}
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		d.uvarint()
		d.take(int(d.uvarint()))
	}
}
