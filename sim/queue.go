package sim

// wake is why the world wakes up at some time.
type wake uint8

const (
	wakeStep  wake = iota // a step of an effect: arg is the lane
	wakeFetch             // a fetch: arg is the reader
	wakeOpen              // the process starts
	wakePower             // a power loss while the process is down
	wakeLate              // completions of the life before arrive
	wakeExit              // the operator ends a process that cannot go on
	wakeBrief             // a brief life appends and closes
	wakeTimer             // a timer of the log is due: only looks
	wakeTask              // an effect of a node's machine goes on: arg is its slot
	wakeReply             // a client of a node hears, or gives up: arg is its request
	wakeRetry             // a node tries again what failed
	wakeRival             // the process of the host before goes on: arg says which
)

// entry is one event to come.
type entry struct {
	at   int64
	seq  uint64 // orders events of one time as they were pushed
	kind wake
	arg  int32
	life int32 // the life that it belongs to; of an earlier one it is void. -1: of none
}

func (a *entry) before(b *entry) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// queue is a binary heap of events, by (time, sequence), in a flat slice.
type queue struct {
	heap []entry
	seq  uint64
}

func (q *queue) reset() { q.heap, q.seq = q.heap[:0], 0 }

func (q *queue) push(e entry) {
	q.seq++
	e.seq = q.seq
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (q *queue) pop() entry {
	h := q.heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[i]) {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	return top
}
