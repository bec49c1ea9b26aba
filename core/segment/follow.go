package segment

import (
	"encoding/binary"
)

// find is what stands at a position where a batch may be.
type find uint8

const (
	findNothing find = iota // no header that verifies, or one that does not follow
	findCut                 // header follows, batch cut by the end of the file
	findBad                 // header follows, payload CRC wrong
	findGood
)

// follow looks for the batch behind the current run: directly, or at the next sector boundary. Not
// ok: the run has ended, and its break is recorded.
func (s *Scanner) follow(b *Batch) (ok bool, err error) {
	p := s.pos
	got, err := s.expect(b, p, false)
	if err != nil || got == findGood {
		return err == nil, err
	}
	end := s.pos + BatchHeaderBytes + int64(b.Identity.PayloadBytes) // counts for findBad only
	if q := roundUp(p, s.sector); q != p {
		// Whatever is left at p, padding or a batch that was rolled back: a batch at q that names
		// our last one as its predecessor was written with nothing between.
		next, err := s.expect(b, q, true)
		if err != nil || next == findGood {
			return err == nil, err
		}
		if next != findNothing {
			p, got = q, next
			end = q + BatchHeaderBytes + int64(b.Identity.PayloadBytes)
		}
	}
	why, err := s.why(p, end, got)
	if err != nil {
		return false, err
	}
	s.endRun(why, p)
	if why == BreakNone {
		s.finish()
		return false, nil
	}
	s.state, s.pos, s.after = scanWalk, p, 0
	if got == findBad {
		s.after = end
	}
	return false, nil
}

// expect tells what stands at pos, where a batch should follow the current run.
func (s *Scanner) expect(b *Batch, pos int64, skipped bool) (find, error) {
	ok, err := s.header(b, pos)
	if err != nil || !ok {
		return findNothing, err
	}
	p, i, r := &b.Placement, &b.Identity, &s.run
	follows := i.Base == r.End && i.Epoch == s.epoch && p.Commit >= r.Commit &&
		(!skipped || p.Commit > r.Commit) &&
		(p.Chain == r.Chain || !s.begun && !s.chained)
	if !follows {
		return findNothing, nil
	}
	return s.payload(b)
}

// header reads a batch header at pos. One that verifies is evidence.
func (s *Scanner) header(b *Batch, pos int64) (ok bool, err error) {
	if pos > s.w.size-BatchHeaderBytes {
		return false, nil
	}
	raw, err := s.w.bytes(pos, BatchHeaderBytes)
	if err != nil {
		return false, err
	}
	b.Pos = pos
	b.Chain, ok = DecodeBatchHeader(&b.Placement, &b.Identity, raw, s.placement, s.identity)
	if !ok || b.Placement.ID != s.file.ID || b.Identity.Base < s.file.Base {
		return false, nil
	}
	if s.epoch == 0 { // the file's header is damaged: its first batch says
		s.epoch, s.info.Header.Epoch = b.Identity.Epoch, b.Identity.Epoch
	}
	if b.Identity.Epoch == s.epoch {
		s.info.Evidence = max(s.info.Evidence, b.Placement.Frontier)
	}
	return true, nil
}

// payload verifies the payload behind a header that verifies.
func (s *Scanner) payload(b *Batch) (find, error) {
	n := BatchHeaderBytes + int64(b.Identity.PayloadBytes)
	if n > s.w.size-b.Pos {
		return findCut, nil
	}
	raw, err := s.w.bytes(b.Pos, n)
	if err != nil {
		return findNothing, err
	}
	b.Raw = raw
	if PayloadCRC(raw[BatchHeaderBytes:]) != b.Identity.PayloadCRC {
		return findBad, nil
	}
	return findGood, nil
}

// why classifies the end of a run at p, where got is what stands there.
func (s *Scanner) why(p, end int64, got find) (Break, error) {
	switch got {
	case findCut:
		return BreakTorn, nil
	case findBad:
		zero, err := s.zeroSector(p, end)
		if err != nil || zero {
			return BreakTorn, err
		}
		return BreakPayload, nil
	}
	q := roundUp(p, s.sector)
	if q == s.footer {
		return BreakNone, nil
	}
	if footer, err := s.footerAt(q); err != nil || footer {
		return BreakNone, err
	}
	limit := s.w.size
	if s.footer > p {
		limit = s.footer
	}
	zero, err := s.zero(p, limit)
	if err != nil || zero {
		return BreakNone, err
	}
	return BreakTorn, nil
}

// footerAt reports whether the footer of just this run begins at q: the first index block verifies,
// although the trailer does not. Derived bytes that are damaged are no torn batch.
func (s *Scanner) footerAt(q int64) (bool, error) {
	if !s.begun || q > s.w.size-blockHead {
		return false, nil
	}
	b, err := s.w.bytes(q, blockHead)
	if err != nil {
		return false, err
	}
	n := int64(binary.LittleEndian.Uint32(b[8:]))
	if binary.LittleEndian.Uint32(b) != entryMagic || n > entriesBlock || blockHead+n*entryBytes > s.w.size-q {
		return false, nil
	}
	if b, err = s.w.bytes(q, blockHead+n*entryBytes); err != nil {
		return false, err
	}
	f := Footer{DataEnd: s.run.EndPos, Chain: s.run.Chain}
	l := Layout{seed: blockSeed(s.placement, q, &f)}
	return l.goodBlock(b, entryMagic, 0, int(n), entryBytes), nil
}

// deviceSector is what a device writes whole or not at all, whatever sector size the log keeps to.
const deviceSector = 512

// zeroSector reports whether any device sector that a batch [pos, end) touches, padding included,
// is all zero: such a sector was never written. With a larger sector size of the log, only one of
// the device sectors in it may be missing.
func (s *Scanner) zeroSector(pos, end int64) (bool, error) {
	for at := pos &^ (deviceSector - 1); at < end; at += deviceSector {
		b, err := s.w.bytes(at, min(deviceSector, s.w.size-at))
		if err != nil {
			return false, err
		}
		if allZero(b) {
			return true, nil
		}
	}
	return false, nil
}

// zero reports whether all bytes of [pos, end) are zero.
func (s *Scanner) zero(pos, end int64) (bool, error) {
	for pos < end {
		n := min(end-pos, windowBytes/4)
		b, err := s.w.bytes(pos, n)
		if err != nil || !allZero(b) {
			return false, err
		}
		pos += n
	}
	return true, nil
}

func allZero(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, v := range b {
		if v != 0 {
			return false
		}
	}
	return true
}

// endRun records the break of the current run, or why none starts at the first batch's place.
func (s *Scanner) endRun(why Break, pos int64) {
	s.info.Tail = why != BreakNone
	if !s.begun {
		s.info.Head, s.info.HeadPos = why, pos
		return
	}
	s.run.Break, s.run.BreakPos = why, pos
	s.info.Runs = append(s.info.Runs, s.run)
}

// walk goes on behind a break, from each next sector boundary and from the end of a batch whose
// payload is bad. A batch that verifies there starts a run, unless it is older than what came
// before it in the file.
func (s *Scanner) walk(b *Batch) (ok bool, err error) {
	for {
		at := roundUp(s.pos+1, s.sector)
		if s.after > s.pos && s.after < at {
			at = s.after
		}
		if at > s.w.size-BatchHeaderBytes {
			s.finish()
			return false, nil
		}
		s.pos = at
		ok, err := s.header(b, at)
		if err != nil {
			return false, err
		}
		if !ok || b.Identity.Epoch != s.epoch || b.Identity.Base < s.run.End || b.Placement.Commit < s.run.Commit {
			continue
		}
		// Crafted headers could claim overlapping payloads without end.
		if s.budget -= int64(b.Identity.PayloadBytes); s.budget < 0 {
			continue
		}
		got, err := s.payload(b)
		if err != nil {
			return false, err
		}
		switch got {
		case findBad:
			s.after = at + BatchHeaderBytes + int64(b.Identity.PayloadBytes)
		case findGood:
			s.begun = false
			return true, nil
		}
	}
}
