package model

// Linear decides whether appends, reads and looks at the tail of a log are linearizable, without
// searching: offsets already say in which order appends took effect.
//
// The append that holds offset k took effect at one instant p(k), with p never falling in k:
//
//   - not before its call, nor before the call of any append below it;
//   - not before the call of a look at the tail that found the log ending at or below k;
//   - not after its return, nor after the return of any append above it;
//   - not after the return of a read or a look at the tail that saw k, or anything above it.
//
// So earliest(k) is the greatest such call over 0..k and latest(k) the least such return over k..,
// and a history is legal iff earliest(k) <= latest(k) for every k: giving each k its earliest
// instant satisfies all of them, and no instant does otherwise. A look that found the end at n fits
// between p(n-1) and p(n) then, too. As earliest never falls, holding it against the least return of
// each k alone comes to the same: one pass.
//
// A batch takes effect whole: its offsets share one instant, and no look may find the end inside it.
// Stamps are 1 and up.
type Linear struct {
	call []Stamp // call of the append whose batch begins at offset k; inside for the rest of a batch
	tail []Stamp // latest call of a look that ended at k; one longer than call
	ret  []Stamp // least return known for offset k itself
}

const inside Stamp = -1

// Reset forgets everything.
func (l *Linear) Reset() {
	l.call, l.ret = l.call[:0], l.ret[:0]
	l.tail = append(l.tail[:0], 0)
}

// End returns the offset after the last append.
func (l *Linear) End() Offset { return Offset(len(l.call)) }

// Append adds a batch of n records at the end, by an append called at call that has not returned.
func (l *Linear) Append(n int32, call Stamp) {
	for range n {
		l.call = append(l.call, call)
		call = inside
		l.ret = append(l.ret, Never)
		l.tail = append(l.tail, 0)
	}
}

// Seen says that offset k had taken effect by ret: its append returned, or somebody saw it.
func (l *Linear) Seen(k Offset, ret Stamp) {
	if k >= 0 && k < l.End() {
		l.ret[k] = min(l.ret[k], ret)
	}
}

// Tail says that somebody looked between call and ret and found the log ending at end.
func (l *Linear) Tail(end Offset, call, ret Stamp) {
	if end < 0 || end > l.End() {
		return
	}
	l.tail[end] = max(l.tail[end], call)
	l.Seen(end-1, ret)
}

// Drop takes out the records from end on as if they had never been: their appends failed for sure.
func (l *Linear) Drop(end Offset) {
	l.call, l.ret, l.tail = l.call[:end], l.ret[:end], l.tail[:end+1]
}

// Lose says that a life ended and the next began by at with the records below end: the rest was lost,
// as the policy allows. What was kept had taken effect by then. Call Check first: it judges what is
// taken out. What had been seen of that bounds nothing afterwards that at does not bound, too.
func (l *Linear) Lose(end Offset, at Stamp) {
	l.Seen(end-1, at)
	l.Drop(end)
}

// Check reports the first offset whose earliest instant is after a return that it must precede, and
// both; or the first inside a batch at which somebody found the end.
func (l *Linear) Check() (k Offset, earliest, latest Stamp, ok bool) {
	for i := range l.call {
		earliest = max(earliest, l.call[i], l.tail[i])
		if earliest > l.ret[i] || (l.call[i] == inside && l.tail[i] != 0) {
			return Offset(i), earliest, l.ret[i], false
		}
	}
	return 0, 0, 0, true
}
