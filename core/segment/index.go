package segment

import (
	"encoding/binary"
	"hash/crc32"
)

// A footer is index blocks, producer blocks and a trailer that ends the file. Every block has its
// own checksum, which starts from the file's placement seed, the position of the footer and the last batch of
// the file, so that a block verifies only in the very footer that it was written for.
const (
	TrailerBytes    = 128
	IndexBlockBytes = 4096 // no block is larger

	blockHead      = 16
	entryBytes     = 24
	producerBytes  = 16 + ProducerBatches*16
	entriesBlock   = (IndexBlockBytes - blockHead) / entryBytes    // 170
	producersBlock = (IndexBlockBytes - blockHead) / producerBytes // 42

	trailerMagic  = "VARVEIDX"
	trailerCRCPos = TrailerBytes - 4
	entryMagic    = 'V' | 'R'<<8 | 'V'<<16 | 'I'<<24
	producerMagic = 'V' | 'R'<<8 | 'V'<<16 | 'P'<<24
)

// Layout says where the parts of a footer are. It comes from a trailer that verified.
type Layout struct {
	Pos       int64 // of the footer in its file
	Entries   uint32
	Producers uint32
	DataPos   int64 // of the first batch
	seed      uint32
	f         Footer
}

func footerBytes(entries, producers int64) int64 {
	return blocksBytes(entries, entriesBlock, entryBytes) +
		blocksBytes(producers, producersBlock, producerBytes) + TrailerBytes
}

func blocksBytes(n, perBlock, each int64) int64 {
	return (n+perBlock-1)/perBlock*blockHead + n*each
}

func blockSeed(placement uint32, pos int64, f *Footer) uint32 {
	var b [20]byte
	le := binary.LittleEndian
	le.PutUint64(b[0:], uint64(pos))
	le.PutUint64(b[8:], uint64(f.DataEnd))
	le.PutUint32(b[16:], f.Chain)
	crc := ^placement
	for _, v := range b { // byte by byte, so that nothing escapes
		crc = castagnoli[byte(crc)^v] ^ crc>>8
	}
	return ^crc
}

func (b *FooterBuilder) append(dst []byte, pos int64) []byte {
	seed := blockSeed(b.placement, pos, &b.f)
	le := binary.LittleEndian
	for k, rest := uint32(0), b.entries; len(rest) > 0; k++ {
		n := min(len(rest), entriesBlock)
		var at int
		dst, at = beginBlock(dst, entryMagic, k, n)
		for _, e := range rest[:n] {
			dst = le.AppendUint64(dst, uint64(e.Offset))
			dst = le.AppendUint64(dst, uint64(e.Pos))
			dst = le.AppendUint64(dst, uint64(e.Before))
		}
		endBlock(dst[at:], seed)
		rest = rest[n:]
	}
	for k, rest := uint32(0), b.producers.order; len(rest) > 0; k++ {
		n := min(len(rest), producersBlock)
		var at int
		dst, at = beginBlock(dst, producerMagic, k, n)
		for _, r := range rest[:n] {
			dst = appendProducer(dst, &b.producers.states[r.at])
		}
		endBlock(dst[at:], seed)
		rest = rest[n:]
	}
	return b.appendTrailer(dst, pos)
}

func beginBlock(dst []byte, magic, number uint32, n int) (out []byte, at int) {
	at = len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, magic)
	dst = le.AppendUint32(dst, number)
	dst = le.AppendUint32(dst, uint32(n))
	return le.AppendUint32(dst, 0), at
}

// endBlock fills in the checksum: of all bytes of the block but its own four.
func endBlock(block []byte, seed uint32) {
	binary.LittleEndian.PutUint32(block[12:], blockCRC(block, seed))
}

func blockCRC(block []byte, seed uint32) uint32 {
	return crc32.Update(crc32.Update(seed, castagnoli, block[:12]), castagnoli, block[blockHead:])
}

func appendProducer(dst []byte, s *ProducerState) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(s.ID))
	dst = le.AppendUint16(dst, uint16(s.Epoch))
	dst = append(dst, s.Count, 0, 0, 0, 0, 0)
	for k := range s.Batches {
		p := &s.Batches[k]
		dst = le.AppendUint32(dst, uint32(p.Sequence))
		dst = le.AppendUint32(dst, p.Records)
		dst = le.AppendUint64(dst, uint64(p.Base))
	}
	return dst
}

func (b *FooterBuilder) appendTrailer(dst []byte, pos int64) []byte {
	le, f, at := binary.LittleEndian, &b.f, len(dst)
	dataPos := f.DataEnd
	if len(b.entries) > 0 {
		dataPos = b.entries[0].Pos
	}
	dst = append(dst, trailerMagic...)
	dst = le.AppendUint16(dst, FormatVersion)
	dst = le.AppendUint16(dst, 0)
	dst = le.AppendUint32(dst, f.Epoch)
	dst = le.AppendUint64(dst, uint64(f.ID))
	dst = le.AppendUint64(dst, uint64(f.Base))
	dst = le.AppendUint64(dst, uint64(f.End))
	dst = le.AppendUint64(dst, uint64(dataPos))
	dst = le.AppendUint64(dst, uint64(f.DataEnd))
	dst = le.AppendUint64(dst, uint64(pos))
	dst = le.AppendUint64(dst, f.Batches)
	dst = le.AppendUint64(dst, uint64(f.MinTime))
	dst = le.AppendUint64(dst, uint64(f.MaxTime))
	dst = le.AppendUint64(dst, uint64(f.AppendTime))
	dst = le.AppendUint64(dst, f.Commit)
	dst = le.AppendUint32(dst, f.Chain)
	dst = le.AppendUint32(dst, f.HeaderCRC)
	dst = le.AppendUint32(dst, uint32(len(b.entries)))
	dst = le.AppendUint32(dst, uint32(len(b.producers.states)))
	dst = le.AppendUint32(dst, 0)
	return le.AppendUint32(dst, crc32.Update(b.placement, castagnoli, dst[at:at+trailerCRCPos]))
}

// ReadTrailer decodes the last TrailerBytes of a file of the given size: a segment file, or a
// sidecar index (sidecar). It is ok only if the checksum verifies under the log and the segment id,
// and if the parts of the footer fill the file exactly.
func ReadTrailer(src []byte, size int64, log LogID, id ID, sidecar bool) (f Footer, l Layout, ok bool) {
	return readTrailer(src, size, PlacementSeed(log, id), id, sidecar)
}

func readTrailer(src []byte, size int64, placement uint32, id ID, sidecar bool) (f Footer, l Layout, ok bool) {
	if len(src) < TrailerBytes || size < TrailerBytes {
		return f, l, false
	}
	le := binary.LittleEndian
	src = src[len(src)-TrailerBytes:]
	version := le.Uint16(src[8:])
	if string(src[:8]) != trailerMagic || version == 0 || version > FormatVersion ||
		le.Uint16(src[10:]) != 0 || le.Uint32(src[120:]) != 0 ||
		le.Uint32(src[trailerCRCPos:]) != crc32.Update(placement, castagnoli, src[:trailerCRCPos]) {
		return f, l, false
	}
	f = Footer{
		Epoch: le.Uint32(src[12:]), ID: ID(le.Uint64(src[16:])),
		Base: Offset(le.Uint64(src[24:])), End: Offset(le.Uint64(src[32:])),
		DataEnd: int64(le.Uint64(src[48:])), Batches: le.Uint64(src[64:]),
		MinTime: Time(le.Uint64(src[72:])), MaxTime: Time(le.Uint64(src[80:])),
		AppendTime: Time(le.Uint64(src[88:])), Commit: le.Uint64(src[96:]),
		Chain: le.Uint32(src[104:]), HeaderCRC: le.Uint32(src[108:]),
	}
	l = Layout{
		DataPos: int64(le.Uint64(src[40:])), Pos: int64(le.Uint64(src[56:])),
		Entries: le.Uint32(src[112:]), Producers: le.Uint32(src[116:]), f: f,
	}
	l.seed = blockSeed(placement, l.Pos, &f)
	place := l.Pos >= f.DataEnd
	if sidecar {
		place = l.Pos == 0
	}
	ok = place && f.ID == id && f.Base >= 0 && f.Base < f.End && f.Batches >= 1 && f.Commit >= 1 &&
		l.DataPos > 0 && l.DataPos < f.DataEnd && l.Entries >= 1 && l.Pos <= size &&
		footerBytes(int64(l.Entries), int64(l.Producers)) == size-l.Pos
	return f, l, ok
}

// blocks returns the number of index blocks.
func (l *Layout) blocks() int { return (int(l.Entries) + entriesBlock - 1) / entriesBlock }

// block returns where index block k lies.
func (l *Layout) block(k int) (pos int64, bytes int) {
	n := min(int(l.Entries)-k*entriesBlock, entriesBlock)
	return l.Pos + int64(k)*IndexBlockBytes, blockHead + n*entryBytes
}

// producersAt returns where the producer blocks lie.
func (l *Layout) producersAt() (pos, bytes int64) {
	return l.Pos + blocksBytes(int64(l.Entries), entriesBlock, entryBytes),
		blocksBytes(int64(l.Producers), producersBlock, producerBytes)
}

// goodBlock verifies one block: magic, number, count, checksum.
func (l *Layout) goodBlock(b []byte, magic, number uint32, n, each int) bool {
	le := binary.LittleEndian
	return len(b) == blockHead+n*each && le.Uint32(b) == magic && le.Uint32(b[4:]) == number &&
		le.Uint32(b[8:]) == uint32(n) && le.Uint32(b[12:]) == blockCRC(b, l.seed)
}

// readProducers decodes the producer blocks; ok only if all verify.
func (l *Layout) readProducers(src []byte, dst []ProducerState) (out []ProducerState, ok bool) {
	le := binary.LittleEndian
	left := int(l.Producers)
	for k := uint32(0); left > 0; k++ {
		n := min(left, producersBlock)
		size := blockHead + n*producerBytes
		if len(src) < size || !l.goodBlock(src[:size], producerMagic, k, n, producerBytes) {
			return dst, false
		}
		for e := src[blockHead:size]; len(e) > 0; e = e[producerBytes:] {
			s := ProducerState{ID: int64(le.Uint64(e)), Epoch: int16(le.Uint16(e[8:])), Count: e[10]}
			if s.Count == 0 || s.Count > ProducerBatches {
				return dst, false
			}
			for j := range s.Batches {
				p := e[16+16*j:]
				s.Batches[j] = ProducerBatch{Sequence: int32(le.Uint32(p)), Records: le.Uint32(p[4:]), Base: Offset(le.Uint64(p[8:]))}
			}
			dst = append(dst, s)
		}
		src, left = src[size:], left-n
	}
	return dst, true
}

// Seek finds the last indexed batch that starts at or before o, reading one block for each halving
// through src, the file that holds the footer. Not ok means that there is no answer, for whatever
// reason, damage included: start at the first batch. buf is scratch of at least IndexBlockBytes.
func (l *Layout) Seek(src Source, o Offset, buf []byte) (pos int64, base Offset, ok bool) {
	return l.search(src, buf, func(e IndexEntry) bool { return e.Offset <= o })
}

// SeekTime finds the last indexed batch before which every record is older than t, as Seek does.
func (l *Layout) SeekTime(src Source, t Time, buf []byte) (pos int64, base Offset, ok bool) {
	return l.search(src, buf, func(e IndexEntry) bool { return e.Before == noTime || e.Before < t })
}

// search returns the last good entry, where all good entries come first.
func (l *Layout) search(src Source, buf []byte, good func(IndexEntry) bool) (pos int64, base Offset, ok bool) {
	lo, hi := 0, l.blocks() // blocks below lo begin with a good entry, those from hi on do not
	var best IndexEntry
	found := false
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		at, n := l.block(mid)
		b := buf[:n]
		if got, _ := src.ReadAt(b, at); got < n {
			return 0, 0, false
		}
		if !l.goodBlock(b, entryMagic, uint32(mid), (n-blockHead)/entryBytes, entryBytes) {
			return 0, 0, false
		}
		count := countUpTo((n-blockHead)/entryBytes, func(k int) bool { return good(entryAt(b, k)) })
		if count == 0 {
			hi = mid
			continue
		}
		best, found = entryAt(b, count-1), true
		if count < (n-blockHead)/entryBytes {
			break
		}
		lo = mid + 1
	}
	inside := best.Offset >= l.f.Base && best.Offset < l.f.End && best.Pos >= l.DataPos && best.Pos < l.f.DataEnd
	return best.Pos, best.Offset, found && inside
}

func entryAt(block []byte, k int) IndexEntry {
	le, e := binary.LittleEndian, block[blockHead+k*entryBytes:]
	return IndexEntry{Offset: Offset(le.Uint64(e)), Pos: int64(le.Uint64(e[8:])), Before: Time(le.Uint64(e[16:]))}
}
