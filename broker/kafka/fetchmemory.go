package kafka

import (
	"context"
	"sync"
	"time"

	"varve"
	"varve/broker/kafka/batch"
)

// chunk is a piece of recycled memory.
type chunk struct {
	b    [chunkBytes]byte
	used int
}

const chunkBytes = 128 << 10

var chunkPool = sync.Pool{New: func() any { return new(chunk) }}

// take copies a batch, with what the broker gives it. It reports false while there is no memory.
func (f *fetched) take(b *varve.BatchView) bool {
	rest := b.Payload
	room := 0
	if n := len(f.chunks); n > 0 {
		room = chunkBytes - f.chunks[n-1].used
	}
	if room < batch.HeaderBytes {
		room = 0
	}
	if chunks := (len(rest) - room + chunkBytes - 1) / chunkBytes; !f.reserve(chunks) {
		return false
	}
	if room == 0 {
		f.chunks = append(f.chunks, chunkPool.Get().(*chunk))
	}
	first := true
	for {
		k := f.chunks[len(f.chunks)-1]
		n := copy(k.b[k.used:], rest)
		piece := k.b[k.used : k.used+n : k.used+n]
		k.used += n
		f.bytes += int64(n)
		f.pieces = append(f.pieces, piece)
		if first {
			batch.Patch(piece, b.Span.First, int32(b.Epoch))
			first = false
		}
		if rest = rest[n:]; len(rest) == 0 {
			return true
		}
		f.chunks = append(f.chunks, chunkPool.Get().(*chunk))
	}
}

// reserve takes memory for so many chunks off the budget: what of an answer is above shareBytes off the
// half of large ones.
func (f *fetched) reserve(chunks int) bool {
	h := &f.s.fetched
	bytes := int64(chunks) * chunkBytes
	small := min(bytes, max(shareBytes-f.small, 0))
	large := min(bytes-small, h.half) // a batch that is longer goes out all the same
	small = min(small, h.half)
	if !f.wait(&h.small, small) {
		return false
	}
	if !f.wait(&h.large, large) {
		h.small.giveBack(small)
		return false
	}
	f.small, f.large = f.small+small, f.large+large
	return true
}

// wait takes bytes off a budget. Only the first batch waits for them: about as long as the client waits
// for an answer, which is empty if they do not come.
func (f *fetched) wait(b *budget, bytes int64) bool {
	if bytes <= 0 || b.tryTake(bytes) {
		return true
	}
	if f.bytes > 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(f.s.ctx, min(max(time.Until(f.until), fetchMemoryWait), f.s.o.FrameTimeout))
	defer cancel()
	return b.take(ctx, bytes) == nil
}

// fetchMemoryWait is how long a fetch waits for memory that would not wait for records.
const fetchMemoryWait = time.Second

// release gives the memory back.
func (f *fetched) release() {
	for _, k := range f.chunks {
		k.used = 0
		chunkPool.Put(k)
	}
	f.s.fetched.small.giveBack(f.small)
	f.s.fetched.large.giveBack(f.large)
	f.chunks, f.small, f.large = nil, 0, 0
}
