package fakevalkey

import (
	"slices"
	"strconv"

	"varve/core/segment"
	"varve/tiers/valkey"
)

// Config is how a server is set up.
type Config struct {
	Replicas int
	Persist  Persist
	Policy   string // maxmemory-policy; empty: noeviction
}

// Persist says what a restart leaves.
type Persist uint8

// Ways to persist.
const (
	Always    Persist = iota // append-only file, synced before each answer
	EverySec                 // append-only file, synced each second: a suffix may go
	Snapshots                // what came after the last snapshot goes
	Nothing                  // everything goes
)

// ReplicasMax bounds Config.Replicas.
const ReplicasMax = 4

// Server is a primary with its replicas.
type Server struct {
	faults   faults
	config   Config
	history  []write
	text     []byte // of keys, fields and values; positions in it are for ever
	fields   []span
	streams  []stream
	replicas [ReplicasMax]replica
	safe     int // length of history that replicas confirmed
	conns    []*Conn
	used     int // conns that are given out
	lastConn valkey.ConnID
	delay    segment.Time
	shaken   bool // a pipeline was broken in its midst: whoever waits next may well find the replicas behind
}

// replica has a prefix of the history.
type replica struct {
	has    int
	frozen bool
}

// span is a range of Server.text.
type span struct{ at, end int }

// rawID is any id of a stream entry, ours or not.
type rawID struct{ a, b uint64 }

func (id rawID) less(other rawID) bool { return id.a < other.a || id.a == other.a && id.b < other.b }

// next is the id that follows.
func (id rawID) next() rawID {
	if id.b++; id.b == 0 {
		id.a++
	}
	return id
}

func (id rawID) append(dst []byte) []byte {
	dst = append(strconv.AppendUint(dst, id.a, 10), '-')
	return strconv.AppendUint(dst, id.b, 10)
}

type writeKind uint8

const (
	writeAdd     writeKind = iota
	writeTrim              // entries below an id
	writeDelete            // a key
	writeType              // a key of another type
	writeDrop              // the oldest entries, which nobody trimmed
	writeRegress           // the last id becomes that of the last entry
)

// write is one write of the history.
type write struct {
	kind   writeKind
	stream int
	id     rawID
	name   span // text of the id
	first  int  // fields and values: fields[first:end]
	end    int
	count  int
}

// stream is what the primary has under a key.
type stream struct {
	key     span
	kind    keyKind
	entries []entry
	last    rawID
}

type keyKind uint8

const (
	kindNone keyKind = iota
	kindStream
	kindOther
)

type entry struct {
	id         rawID
	name       span
	first, end int
}

// New returns a server that draws from below. It is of no use before Reset.
func New(below func(n uint64) uint64) *Server {
	s := &Server{}
	s.faults.below = below
	return s
}

// Reset makes it a server without any data, connections or faults.
func (s *Server) Reset(c Config) {
	check(c.Replicas >= 0 && c.Replicas <= ReplicasMax, "number of replicas")
	s.config = c
	s.faults = faults{below: s.faults.below}
	s.history, s.text, s.fields = s.history[:0], s.text[:0], s.fields[:0]
	s.streams = s.streams[:0]
	s.replicas = [ReplicasMax]replica{}
	s.safe, s.used, s.lastConn, s.delay = 0, 0, 0, 0
	s.shaken = false
}

func check(ok bool, what string) {
	if !ok {
		panic("fakevalkey: " + what)
	}
}

// TakeDelay returns how long the calls since the last TakeDelay took.
func (s *Server) TakeDelay() segment.Time {
	d := s.delay
	s.delay = 0
	return d
}

// keep copies bytes into the server's memory.
func (s *Server) keep(b []byte) span {
	at := len(s.text)
	s.text = append(s.text, b...)
	return span{at, len(s.text)}
}

// keepID keeps the text of an id.
func (s *Server) keepID(id rawID) span {
	at := len(s.text)
	s.text = id.append(s.text)
	return span{at, len(s.text)}
}

func (s *Server) bytes(x span) []byte { return s.text[x.at:x.end] }

// stream finds a key, or makes room for it.
func (s *Server) stream(key []byte) int {
	for i := range s.streams {
		if string(s.bytes(s.streams[i].key)) == string(key) {
			return i
		}
	}
	if n := len(s.streams); n < cap(s.streams) {
		s.streams = s.streams[:n+1]
		s.streams[n] = stream{key: s.keep(key), entries: s.streams[n].entries[:0]}
	} else {
		s.streams = append(s.streams, stream{key: s.keep(key)})
	}
	return len(s.streams) - 1
}

// write adds a write to the history and does it. It returns the length of the history behind it.
func (s *Server) write(w write) int {
	s.history = append(s.history, w)
	s.apply(&w)
	return len(s.history)
}

// apply does a write on the streams.
func (s *Server) apply(w *write) {
	x := &s.streams[w.stream]
	switch w.kind {
	case writeAdd:
		x.kind, x.last = kindStream, w.id
		x.entries = append(x.entries, entry{w.id, w.name, w.first, w.end})
	case writeTrim:
		x.drop(x.index(w.id))
	case writeDrop:
		x.drop(min(w.count, len(x.entries)))
	case writeDelete:
		x.gone(kindNone)
	case writeType:
		x.gone(kindOther)
	case writeRegress:
		if x.last = (rawID{}); len(x.entries) > 0 {
			x.last = x.entries[len(x.entries)-1].id
		} else if x.kind == kindStream {
			x.kind = kindNone
		}
	}
}

// index returns the place of the first entry that is not below an id: ids rise.
func (x *stream) index(id rawID) int {
	low, high := 0, len(x.entries)
	for low < high {
		if mid := (low + high) / 2; x.entries[mid].id.less(id) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (x *stream) drop(n int) { x.entries = x.entries[:copy(x.entries, x.entries[n:])] }

func (x *stream) gone(kind keyKind) {
	x.kind, x.entries, x.last = kind, x.entries[:0], rawID{}
}

// cut loses the end of the history.
func (s *Server) cut(n int) {
	s.history = s.history[:n]
	for i := range s.streams {
		s.streams[i].gone(kindNone)
	}
	for i := range s.history {
		s.apply(&s.history[i])
	}
	for i := range s.replicas {
		s.replicas[i].has = min(s.replicas[i].has, n)
	}
	s.safe = min(s.safe, n)
}

// Has reports whether the primary has an entry.
func (s *Server) Has(key string, id valkey.ID) bool {
	x := s.find(key)
	return x != nil && slices.ContainsFunc(x.entries, func(e entry) bool {
		return e.id == (rawID{id.Generation, uint64(id.End)})
	})
}

// Before returns the id of the entry before the newest one of a key.
func (s *Server) Before(key string) (id valkey.ID, ok bool) {
	n := s.Len(key) - 2
	if n < 0 {
		return id, false
	}
	raw := s.find(key).entries[n].id
	return valkey.ID{Generation: raw.a, End: segment.Offset(raw.b)}, true
}

// Len returns how many entries the primary has under a key.
func (s *Server) Len(key string) int {
	if x := s.find(key); x != nil {
		return len(x.entries)
	}
	return 0
}

// At returns the value of an entry of a key: of its first field.
func (s *Server) At(key string, i int) []byte {
	e := &s.find(key).entries[i]
	return s.bytes(s.fields[e.first+1])
}

// Held returns the second number in the id of the newest entry of a key that has one and that so many
// replicas have; the primary alone, if none is asked for.
func (s *Server) Held(key string, replicas int) uint64 {
	n := len(s.history)
	if replicas > 0 {
		var has [ReplicasMax]int
		for i := range s.replicas[:s.config.Replicas] {
			has[i] = s.replicas[i].has
		}
		slices.Sort(has[:])
		n = has[max(0, ReplicasMax-replicas)]
	}
	for n--; n >= 0; n-- {
		if w := &s.history[n]; w.kind == writeAdd && w.id.b > 0 && string(s.bytes(s.streams[w.stream].key)) == key {
			return w.id.b
		}
	}
	return 0
}

func (s *Server) find(key string) *stream {
	for i := range s.streams {
		if string(s.bytes(s.streams[i].key)) == key {
			return &s.streams[i]
		}
	}
	return nil
}
