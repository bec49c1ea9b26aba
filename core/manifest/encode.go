package manifest

import (
	"hash/crc32"
	"strconv"

	"varve/core/segment"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Every version keeps these: how the first line begins, version included, and the last line, whose
// checksum is over all bytes before it. So an older program refuses a newer text by its version.
const (
	manifestHead = `{"varve":"manifest","version":`
	pageHead     = `{"varve":"page","version":`
	tailBegin    = `"crc":"`
	tailEnd      = "\"}\n"
	tailBytes    = len(tailBegin) + 8 + len(tailEnd)
)

// Append appends the text of a manifest. It panics on one that Parse would refuse.
func Append(dst []byte, m *Manifest) []byte {
	check(m.Verify() == nil, "encodes what it would refuse")
	at := len(dst)
	dst = appendHead(dst, manifestHead)
	dst = append(dst, `"log":"`...)
	dst = appendBytes(dst, m.LogID[:])
	dst = appendUint(dst, `","epoch":`, uint64(m.Epoch))
	dst = append(dst, `,"nonce":"`...)
	dst = appendHex(dst, m.Nonce, 16)
	dst = appendUint(dst, `","sequence":`, m.Sequence)
	dst = appendInt(dst, ",\n\"start\":", m.Start)
	dst = appendInt(dst, `,"deleted_to":`, m.DeletedTo)
	dst = append(dst, ",\n\"lineage\":[\n"...)
	for i, l := range m.Lineage {
		dst = appendUint(dst, `{"epoch":`, uint64(l.Epoch))
		dst = appendInt(dst, `,"first":`, l.First)
		dst = endItem(dst, i, len(m.Lineage))
	}
	dst = append(dst, "],\n\"segments\":[\n"...)
	for i := range m.Segments {
		dst = appendSegment(dst, &m.Segments[i])
		dst = endItem(dst, i, len(m.Segments))
	}
	dst = append(dst, "],\n\"pages\":[\n"...)
	for i := range m.Pages {
		dst = appendPage(dst, &m.Pages[i])
		dst = endItem(dst, i, len(m.Pages))
	}
	return appendTail(dst, at)
}

// AppendPage appends the text of a page. It panics on one that ParsePage would refuse.
func AppendPage(dst []byte, p *PageText) []byte {
	check(p.Verify() == nil, "encodes a page that it would refuse")
	at := len(dst)
	dst = appendHead(dst, pageHead)
	dst = append(dst, `"log":"`...)
	dst = appendBytes(dst, p.LogID[:])
	dst = appendUint(dst, `","number":`, p.Number)
	dst = append(dst, ",\n\"segments\":[\n"...)
	for i := range p.Segments {
		dst = appendSegment(dst, &p.Segments[i])
		dst = endItem(dst, i, len(p.Segments))
	}
	return appendTail(dst, at)
}

func appendHead(dst []byte, head string) []byte {
	dst = appendUint(dst, head, Version)
	return append(dst, ",\n"...)
}

// appendTail ends the last list and the text that begins at at.
func appendTail(dst []byte, at int) []byte {
	dst = append(dst, "],\n"...)
	crc := crc32.Update(0, castagnoli, dst[at:])
	dst = append(dst, tailBegin...)
	dst = appendHex(dst, uint64(crc), 8)
	return append(dst, tailEnd...)
}

func appendSegment(dst []byte, s *Segment) []byte {
	dst = appendSpan(dst, s.Base, s.End)
	dst = appendUint(dst, `,"epoch":`, uint64(s.Epoch))
	dst = append(dst, `,"state":"`...)
	dst = append(dst, s.State.String()...)
	dst = appendUint(dst, `","attempt":`, s.Attempt)
	dst = append(dst, `,"id":"`...)
	dst = appendHex(dst, uint64(s.ID), 16)
	dst = appendInt(dst, `","bytes":`, s.Bytes)
	dst = appendInt(dst, `,"footer_bytes":`, s.FooterBytes)
	dst = append(dst, `,"crc":"`...)
	dst = appendHex(dst, uint64(s.CRC), 8)
	dst = append(dst, '"')
	return appendTimes(dst, s.MinTime, s.MaxTime, s.AppendTime)
}

func appendPage(dst []byte, p *Page) []byte {
	dst = appendSpan(dst, p.Base, p.End)
	dst = appendUint(dst, `,"number":`, p.Number)
	dst = appendInt(dst, `,"count":`, int64(p.Count))
	dst = appendInt(dst, `,"bytes":`, p.Bytes)
	dst = append(dst, `,"crc":"`...)
	dst = appendHex(dst, uint64(p.CRC), 8)
	dst = appendInt(dst, `","object_bytes":`, p.ObjectBytes)
	return appendTimes(dst, p.MinTime, p.MaxTime, p.AppendTime)
}

func appendSpan(dst []byte, base, end segment.Offset) []byte {
	dst = appendInt(dst, `{"base":`, base)
	return appendInt(dst, `,"end":`, end)
}

func appendTimes(dst []byte, least, greatest, appended segment.Time) []byte {
	dst = appendInt(dst, `,"min_time":`, least)
	dst = appendInt(dst, `,"max_time":`, greatest)
	return appendInt(dst, `,"append_time":`, appended)
}

// endItem ends item i of n of a list.
func endItem(dst []byte, i, n int) []byte {
	if i+1 < n {
		return append(dst, "},\n"...)
	}
	return append(dst, "}\n"...)
}

func appendUint(dst []byte, key string, v uint64) []byte {
	return strconv.AppendUint(append(dst, key...), v, 10)
}

func appendInt(dst []byte, key string, v int64) []byte {
	return strconv.AppendInt(append(dst, key...), v, 10)
}

const hexDigits = "0123456789abcdef"

func appendHex(dst []byte, v uint64, digits int) []byte {
	var b [16]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = hexDigits[v&15]
		v >>= 4
	}
	return append(dst, b[16-digits:]...)
}

func appendBytes(dst, b []byte) []byte {
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}
