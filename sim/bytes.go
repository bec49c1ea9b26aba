package sim

import (
	"encoding/binary"
	"math/bits"

	"varve/faultfs"
	"varve/sim/fakevalkey"
)

// A fuzzer's bytes are a schedule: a seed that the header is drawn from, then eventBytes an event.
// Records of one size let a fuzzer delete, swap and double events.
const (
	eventBytes     = 12
	eventsFromMost = 200
)

// FromBytes makes a schedule of any bytes into s, whose memory is reused. Unlike Expand it puts no
// event where it makes sense, and every bounded argument is possible.
func FromBytes(s *Schedule, b []byte) {
	var word [8]byte
	b = b[copy(word[:], b):]
	x := expander{s: s, ops: 1}
	seed := binary.LittleEndian.Uint64(word[:])
	x.r.Seed(mix(seed))
	s.Events = s.Events[:0]
	s.Header = Header{Seed: seed, Profile: drawProfile(&x.r)}
	x.header()
	x.at = x.openTime()
	for len(b) > 0 && len(s.Events) < eventsFromMost {
		var e [eventBytes]byte
		b = b[copy(e[:], b):]
		x.eventOf(&e)
	}
}

// eventOf emits the event of one record: kind, time since the event before, client, salt of its
// seed, then four arguments.
func (x *expander) eventOf(b *[eventBytes]byte) {
	le := binary.LittleEndian
	e := Event{Kind: Kind(b[0]) % TopicCreate, Client: b[2] % uint8(x.s.Header.Clients)}
	args := [4]*int64{&e.A, &e.B, &e.C, &e.D}
	for i, to := range args {
		if argNames[e.Kind][i] != "" {
			*to = int64(le.Uint16(b[4+2*i:]))
		}
	}
	x.bound(&e)
	x.at += int64(1+b[1]&15) * microsecond << (b[1] >> 4)
	x.emit(e)
	// Its seed comes from its own bytes: the other events may come and go.
	n := &x.s.Events[len(x.s.Events)-1]
	n.Sub = sub(x.s.Header.Seed^le.Uint64(b[:]), uint64(le.Uint32(b[8:])))
}

// bound brings the arguments of an event into their ranges, and durations to what a run can wait.
func (x *expander) bound(e *Event) {
	switch e.Kind {
	case Append:
		big := int64(64)
		if x.on(SwBig) {
			big = 3 * x.s.Header.Config[0].SegmentBytes / 2
		}
		e.A, e.B, e.C, e.D = 8+e.A%(big-7), 1+e.B%4, e.C%contentCount, e.D%(producersMax+1)
	case Retry:
		e.A %= producersMax
	case Read:
		e.A, e.B, e.C = e.A%1001, 1+e.B, 1+e.C%1000
	case Poll:
		e.A, e.B = 1+e.A, 1+e.B%1000
	case Trim, FindTime:
		e.A %= 1001
		if e.Kind == Trim {
			x.set(SwTrim)
		}
	case Restart:
		e.A, e.B, e.C = e.A%2, (1+e.B)*microsecond, 0
	case Crash:
		e.A, e.B, e.C = e.A%deathCount, e.B%32, (1+e.C)*microsecond
		e.D = e.D&1 | e.D>>1&63<<8 | e.D>>7&63<<16
	case Doom:
		e.A, e.B, e.C = 1+e.A%64, e.B%deathCount, e.C%(savesMax+1)
	case Arm:
		op := faultfs.Op(e.B) % faultfs.OpCount
		set := uint64(faultfs.CallFaults(op))
		for n := int(e.A) % bits.OnesCount64(set); n > 0; n-- {
			set &= set - 1
		}
		e.A, e.B, e.C = int64(bits.TrailingZeros64(set)), int64(op), e.C%16
	case Clock:
		e.A, e.B = e.A%clockJumps, (1+e.B)*millisecond
	case Pause:
		e.A = (1 + e.A) * 100 * microsecond
	case Rot:
		e.A, e.B = e.A%1001, 1+e.B%8
	case Offload:
		e.A %= 1001
	case Lose, Move:
		e.A, e.B = (1+e.A)*microsecond, e.B*microsecond
	case Spoil:
		e.A, e.B = e.A%1001, e.B%spoilCount
	case Outage:
		e.A %= outageCount
	case Server:
		e.A, e.B = e.A%serverCount, e.B%fakevalkey.ReplicasMax
	case Slow:
		e.A, e.B = e.A%3, (1+e.B)*100*microsecond
	}
}
