package segment

import "math"

// Footer is the summary in a footer's trailer. A footer is a pure function of the segment's
// batches: derived, never evidence, never trusted over records.
type Footer struct {
	ID         ID
	Base, End  Offset // records of the file: [Base, End)
	DataEnd    int64  // position after the last batch
	Batches    uint64
	MinTime    Time // least and greatest max-timestamp of the batches
	MaxTime    Time
	AppendTime Time   // of the newest batch
	Commit     uint64 // counter of the last batch
	Chain      uint32 // CRC of the last placement header
	Epoch      Epoch
	HeaderCRC  uint32 // CRC of the segment header; 0 where that is damaged
}

// IndexEntry says that a batch starts at Pos with record Offset, and that no record of the batches
// before it is younger than Before. It only says where to start.
type IndexEntry struct {
	Offset Offset
	Pos    int64
	Before Time // greatest max-timestamp of all batches before this one; noTime before the first
}

// noTime is before every time.
const noTime Time = math.MinInt64

// FooterBuilder gathers the footer of one segment, batch by batch, and answers look-ups while the
// segment is active. It is used by one goroutine and reused from segment to segment; in steady
// state it allocates nothing.
type FooterBuilder struct {
	f         Footer
	sector    int64
	spacing   int64
	indexed   int64 // position of the last batch that has an entry
	entries   []IndexEntry
	producers producerTable
	placement uint32 // seed
}

// Reset starts the footer of a segment with this header. headerCRC is 0 where that is damaged.
func (b *FooterBuilder) Reset(h *Header, headerCRC uint32, spacing int64) {
	check(spacing > 0 && validSector(h.SectorBytes), "layout of a footer")
	b.sector, b.spacing = int64(h.SectorBytes), spacing
	b.f = Footer{ID: h.ID, Base: h.Base, End: h.Base, DataEnd: b.sector, Epoch: h.Epoch, HeaderCRC: headerCRC}
	b.entries = b.entries[:0]
	b.producers.reset()
	b.placement = PlacementSeed(h.LogID, h.ID)
}

// Add takes a batch that is known to be written at pos: commit is its placement counter and chain
// the CRC of its placement header. Batches come in file order.
func (b *FooterBuilder) Add(pos int64, i *Identity, commit uint64, chain uint32) {
	f := &b.f
	check(pos >= f.DataEnd, "batches of a footer overlap")
	check(i.Base == f.End, "batches of a footer leave a gap")
	check(commit >= f.Commit, "commit counter of a footer falls")
	switch {
	case f.Batches == 0:
		b.entries = append(b.entries, IndexEntry{Offset: i.Base, Pos: pos, Before: noTime})
		b.indexed = pos
		f.MinTime, f.MaxTime = i.MaxTime, i.MaxTime
	case pos-b.indexed >= b.spacing:
		b.entries = append(b.entries, IndexEntry{Offset: i.Base, Pos: pos, Before: f.MaxTime})
		b.indexed = pos
	}
	f.MinTime = min(f.MinTime, i.MaxTime)
	f.MaxTime = max(f.MaxTime, i.MaxTime)
	f.AppendTime = i.AppendTime
	f.End = i.End()
	f.DataEnd = pos + BatchHeaderBytes + int64(i.PayloadBytes)
	f.Commit, f.Chain = commit, chain
	f.Batches++
	b.producers.add(i)
}

// Summary returns the summary of what was added so far.
func (b *FooterBuilder) Summary() Footer { return b.f }

// Pos returns where the footer goes in the segment file: the first sector boundary behind the data.
func (b *FooterBuilder) Pos() int64 { return roundUp(b.f.DataEnd, b.sector) }

// Bytes returns the encoded size of the footer as it is now.
func (b *FooterBuilder) Bytes() int64 {
	return footerBytes(int64(len(b.entries)), int64(len(b.producers.states)))
}

// ProducersFull reports that the footer holds as many producers as it may: time to roll.
func (b *FooterBuilder) ProducersFull() bool {
	return len(b.producers.states) >= FooterProducersMax
}

// Append appends the encoded footer of the segment file, to be written at Pos.
func (b *FooterBuilder) Append(dst []byte) []byte { return b.append(dst, b.Pos()) }

// AppendIndex appends the content of a sidecar index: the same footer, at position 0 of its file.
func (b *FooterBuilder) AppendIndex(dst []byte) []byte { return b.append(dst, 0) }

// Lookup returns the position and base offset of the last indexed batch that starts at or before o.
func (b *FooterBuilder) Lookup(o Offset) (pos int64, base Offset, ok bool) {
	n := countUpTo(len(b.entries), func(k int) bool { return b.entries[k].Offset <= o })
	if n == 0 {
		return 0, 0, false
	}
	return b.entries[n-1].Pos, b.entries[n-1].Offset, true
}

// LookupTime returns the last indexed batch before which every record is older than t.
func (b *FooterBuilder) LookupTime(t Time) (pos int64, base Offset, ok bool) {
	n := countUpTo(len(b.entries), func(k int) bool { return k == 0 || b.entries[k].Before < t })
	if n == 0 {
		return 0, 0, false
	}
	return b.entries[n-1].Pos, b.entries[n-1].Offset, true
}

// countUpTo returns how many of 0..n-1 are good, where all good ones come first.
func countUpTo(n int, good func(int) bool) int {
	lo, hi := 0, n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if good(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// roundUp returns the first multiple of step, a power of two, at or after n.
func roundUp(n, step int64) int64 { return (n + step - 1) &^ (step - 1) }
