package segment

// Rewriter makes the bytes of a replacement file from verified batches of another file: identities
// and payloads as they are, placement headers new. It keeps its memory from file to file.
type Rewriter struct {
	h         Header
	frontier  Offset
	placement uint32 // seeds
	identity  uint32
	pos       int64 // where the next byte goes
	commit    uint64
	chain     uint32
	footer    FooterBuilder
}

// Begin starts a file and appends its header sector to dst. frontier is what is proven durable now;
// each batch gets it, capped at its own base.
func (w *Rewriter) Begin(dst []byte, h *Header, frontier Offset, spacing int64) []byte {
	check(h.Kind == Replacement && h.End > h.Base, "header of a replacement")
	w.h, w.frontier = *h, frontier
	w.identity = IdentitySeed(h.LogID)
	w.placement = PlacementSeedOf(w.identity, h.ID)
	at := len(dst)
	dst = appendZeros(dst, int64(h.SectorBytes))
	w.chain = PutHeader(dst[at:], h)
	w.pos, w.commit = int64(h.SectorBytes), 0
	w.footer.Reset(h, w.chain, spacing)
	return dst
}

// Add appends a batch to dst. Batches come in offset order without a gap, from the header's base on.
func (w *Rewriter) Add(dst []byte, b *Batch) []byte {
	i := &b.Identity
	check(i.Base == w.footer.f.End && i.End() <= w.h.End, "batch outside of a replacement's span")
	at := len(dst)
	dst = append(dst, b.Raw...)
	w.commit++
	p := Placement{ID: w.h.ID, Commit: w.commit, Chain: w.chain, Frontier: min(w.frontier, i.Base)}
	w.chain = PutBatchHeader(dst[at:], &p, i, w.placement, w.identity)
	w.footer.Add(w.pos, i, w.commit, w.chain)
	w.pos += int64(len(b.Raw))
	return dst
}

// End returns the offset that the next batch must have.
func (w *Rewriter) End() Offset { return w.footer.f.End }

// AppendProducers appends what the batches say of producers, sorted by id.
func (w *Rewriter) AppendProducers(dst []ProducerState) []ProducerState {
	return w.footer.producers.appendTo(dst)
}

// FooterPos returns where the footer will start if the file ends now.
func (w *Rewriter) FooterPos() int64 { return w.footer.Pos() }

// Finish appends padding and footer to dst, once End has reached the end of the header's span, and
// returns the size of the whole file.
func (w *Rewriter) Finish(dst []byte) (out []byte, fileBytes int64) {
	check(w.footer.f.End == w.h.End, "replacement is not complete")
	pos := w.footer.Pos()
	dst = appendZeros(dst, pos-w.pos)
	at := len(dst)
	dst = w.footer.Append(dst)
	return dst, pos + int64(len(dst)-at)
}

// appendZeros appends n zero bytes, at most a sector.
func appendZeros(dst []byte, n int64) []byte {
	var zero [SectorBytesMax]byte
	return append(dst, zero[:n]...)
}
