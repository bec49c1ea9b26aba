package sim

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
)

// This file reads segment files from the byte tables of docs/format.md alone. It shares no code
// with the codec of the core, so that a mistake made in both writing and reading shows.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// decoded is one batch found in an image.
type decoded struct {
	base, end int64
	epoch     uint32
	segment   uint64
	commit    uint64
	frontier  int64
	pos       int64
	payload   []byte // aliases the image
}

// decoder reads segment files of one log.
type decoder struct {
	logID    [16]byte
	identity uint32 // seed
}

func (d *decoder) reset(logID [16]byte) {
	if d.logID != logID || d.identity == 0 {
		d.logID = logID
		d.identity = crc32.Update(0, castagnoli, d.logID[:])
	}
}

// decodedFile is what the header of a segment file says.
type decodedFile struct {
	id          uint64
	base, end   int64 // end of a replacement's span
	replacement bool
	epoch       uint32
	sector      int64
	crc         uint32
	seed        uint32 // of its placement headers
	loose       bool   // the header did not verify: epoch and first chain are not known
}

const (
	headerBytes    = 128
	placementBytes = 40
	identityBytes  = 72
)

// header reads the header of a segment file. The error is a text, "" for none.
func (d *decoder) header(b []byte) (f decodedFile, wrong string) {
	le := binary.LittleEndian
	switch {
	case len(b) < headerBytes:
		return f, "shorter than a header"
	case string(b[:8]) != "VARVESEG":
		return f, "bad magic"
	case crc32.Checksum(b[:124], castagnoli) != le.Uint32(b[124:]):
		return f, "bad header checksum"
	case le.Uint16(b[8:]) != 1:
		return f, "version is not 1"
	case string(b[16:32]) != string(d.logID[:]):
		return f, "another log's id"
	}
	f = decodedFile{
		id: le.Uint64(b[32:]), base: int64(le.Uint64(b[48:])), end: int64(le.Uint64(b[56:])),
		replacement: b[10] == 2, epoch: le.Uint32(b[40:]), sector: int64(le.Uint32(b[12:])),
		crc: le.Uint32(b[124:]),
	}
	if f.sector < 512 || f.sector > 4096 || f.sector&(f.sector-1) != 0 {
		return f, "bad sector size"
	}
	f.seed = crc32.Update(d.identity, castagnoli, b[32:40])
	return f, ""
}

// byName stands in for a header that does not verify: the name gives base offset and id.
func (d *decoder) byName(name string, sector int64) (f decodedFile, ok bool) {
	if len(name) != 41 || name[20] != '-' || name[37:] != ".seg" {
		return f, false
	}
	base, err := strconv.ParseInt(name[:20], 10, 64)
	id, err2 := strconv.ParseUint(name[21:37], 16, 64)
	if err != nil || err2 != nil {
		return f, false
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], id)
	return decodedFile{
		id: id, base: base, sector: sector, loose: true,
		seed: crc32.Update(d.identity, castagnoli, b[:]),
	}, true
}

// batch reads the batch at pos. It reports false if none verifies there, headers and payload.
func (d *decoder) batch(f *decodedFile, b []byte, pos int64, x *decoded) (chain, crc uint32, ok bool) {
	le := binary.LittleEndian
	if pos+placementBytes+identityBytes > int64(len(b)) || string(b[pos:pos+4]) != "VRVB" {
		return 0, 0, false
	}
	p, i := b[pos:pos+placementBytes], b[pos+placementBytes:pos+placementBytes+identityBytes]
	crc = le.Uint32(p[36:])
	if crc32.Update(f.seed, castagnoli, p[:36]) != crc ||
		crc32.Update(d.identity, castagnoli, i[:68]) != le.Uint32(i[68:]) ||
		le.Uint32(p[32:]) != le.Uint32(i[68:]) || le.Uint64(p[8:]) != f.id {
		return 0, 0, false
	}
	size := int64(le.Uint32(i))
	at := pos + placementBytes + identityBytes
	if size > int64(len(b))-at {
		return 0, 0, false
	}
	payload := b[at : at+size]
	if crc32.Checksum(payload, castagnoli) != le.Uint32(i[60:]) {
		return 0, 0, false
	}
	base := int64(le.Uint64(i[16:]))
	*x = decoded{
		base: base, end: base + int64(le.Uint32(i[8:])), epoch: le.Uint32(i[12:]), segment: f.id,
		commit: le.Uint64(p[16:]), frontier: int64(le.Uint64(p[24:])), pos: pos, payload: payload,
	}
	return le.Uint32(p[4:]), crc, true
}

// walk goes through the batches of a file that follow each other: chain, offsets, epoch, commit
// counter. It ends where none follows.
type walk struct {
	d      *decoder
	f      decodedFile
	b      []byte
	pos    int64 // after the last batch
	base   int64
	chain  uint32
	commit uint64
	x      decoded
}

func (w *walk) next() bool {
	var x decoded
	prev, crc, ok := w.d.batch(&w.f, w.b, w.pos, &x)
	if next := (w.pos + w.f.sector - 1) &^ (w.f.sector - 1); !ok && next != w.pos {
		prev, crc, ok = w.d.batch(&w.f, w.b, next, &x)
	}
	if w.f.loose && ok {
		w.f.loose, w.f.epoch, w.chain = false, x.epoch, prev
	}
	if !ok || prev != w.chain || x.base != w.base || x.epoch != w.f.epoch || x.commit < w.commit {
		return false
	}
	w.x, w.base, w.chain, w.commit = x, x.end, crc, x.commit
	w.pos = x.pos + placementBytes + identityBytes + int64(len(x.payload))
	return true
}

// resync looks behind damage, from each sector boundary on, for a batch to go on with. Batches that
// begin inside a sector cannot be found behind damage.
func (w *walk) resync() bool {
	for pos := (w.pos + w.f.sector) &^ (w.f.sector - 1); pos < int64(len(w.b)); pos += w.f.sector {
		var x decoded
		if _, crc, ok := w.d.batch(&w.f, w.b, pos, &x); ok && x.base >= w.base {
			w.x, w.base, w.chain, w.commit = x, x.end, crc, x.commit
			w.pos = pos + placementBytes + identityBytes + int64(len(x.payload))
			return true
		}
	}
	return false
}
