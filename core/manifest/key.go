package manifest

import (
	"math"
	"strings"

	"varve/core/segment"
)

// Key is the name of an object below the prefix of a log, taken apart.
type Key struct {
	Kind    KeyKind
	Base    segment.Offset // of a page or a segment
	End     segment.Offset // of a segment
	Epoch   segment.Epoch  // of a segment
	Attempt uint64         // of a segment
	Number  uint64         // of a page
}

// KeyKind says what a key stands for.
type KeyKind uint8

// Key kinds.
const (
	KeyManifest KeyKind = iota + 1
	KeyPage
	KeySegment
)

// ManifestKey is the key of the manifest.
const ManifestKey = "manifest.json"

// SegmentPrefix is what the keys of all objects begin with.
const SegmentPrefix = "segments/"

const (
	pagePrefix    = "pages/"
	pageSuffix    = ".json"
	segmentSuffix = ".seg"
	offsetDigits  = 20
	epochDigits   = 8
)

// AppendKey appends the key of a page: pages/<base, 20 digits>-<number>.json.
func (p *Page) AppendKey(dst []byte) []byte {
	dst = appendOffset(append(dst, pagePrefix...), p.Base)
	dst = appendUint(dst, "-", p.Number)
	return append(dst, pageSuffix...)
}

// AppendKey appends the key of an object:
// segments/<base, 20 digits>-<end, 20 digits>-<epoch, 8 hex>-<attempt>.seg.
func (s *Segment) AppendKey(dst []byte) []byte {
	check(s.State != Lost, "key of a span without an object")
	dst = appendOffset(append(dst, SegmentPrefix...), s.Base)
	dst = appendOffset(append(dst, '-'), s.End)
	dst = appendHex(append(dst, '-'), uint64(s.Epoch), epochDigits)
	dst = appendUint(dst, "-", s.Attempt)
	return append(dst, segmentSuffix...)
}

func appendOffset(dst []byte, o segment.Offset) []byte {
	check(o >= 0, "offset of a key")
	dst = append(dst, "00000000000000000000"...)
	for i := len(dst) - 1; o > 0; i-- {
		dst[i] = byte('0' + o%10)
		o /= 10
	}
	return dst
}

// ParseKey takes a key apart. It accepts exactly the keys of a manifest and of pages and objects that
// one can name, and nothing else.
func ParseKey(key string) (k Key, ok bool) {
	if key == ManifestKey {
		return Key{Kind: KeyManifest}, true
	}
	// The longest key has 81 bytes. What is longer is not looked at.
	if rest, is := strings.CutPrefix(key, pagePrefix); is && len(key) < 100 {
		rest, is = strings.CutSuffix(rest, pageSuffix)
		p := parser{b: []byte(rest)}
		k = Key{Kind: KeyPage, Base: p.keyOffset()}
		k.Number = p.number("", "-", 1)
		return k, is && p.used()
	}
	if rest, is := strings.CutPrefix(key, SegmentPrefix); is && len(key) < 100 {
		rest, is = strings.CutSuffix(rest, segmentSuffix)
		p := parser{b: []byte(rest)}
		k = Key{Kind: KeySegment, Base: p.keyOffset()}
		p.literal("-")
		k.End = p.keyOffset()
		p.literal("-")
		k.Epoch = segment.Epoch(p.hex(epochDigits))
		k.Attempt = p.number("", "-", 1)
		return k, is && p.used() && k.End > k.Base && k.Epoch > 0
	}
	return Key{}, false
}

// keyOffset reads an offset of a fixed number of digits.
func (p *parser) keyOffset() segment.Offset {
	var v uint64
	if len(p.b)-p.at < offsetDigits {
		p.fail("20 digits", p.found())
		return 0
	}
	for _, c := range p.b[p.at : p.at+offsetDigits] {
		d := uint64(c) - '0'
		if d > 9 || v > math.MaxInt64/10 || v*10+d > NumberMax {
			p.fail("20 digits", p.found())
			return 0
		}
		v = v*10 + d
	}
	p.at += offsetDigits
	return segment.Offset(v)
}

// used reports whether all was read, without an error.
func (p *parser) used() bool { return p.err == nil && p.at == len(p.b) }
