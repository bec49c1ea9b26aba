package batch

import "testing"

// TestShortVarints: what is read in one or two bytes is what the general way reads, for all bytes and ends.
func TestShortVarints(t *testing.T) {
	read := func(b []byte, rest int64, f func(*Walker, string) (int64, bool)) (v int64, ok bool, left int, restLeft int64, failed bool) {
		w := Walker{buf: b, rest: rest}
		v, ok = f(&w, "a number")
		if !ok {
			return v, ok, 0, 0, w.err != nil
		}
		return v, ok, len(w.buf) - w.pos, w.rest, w.err != nil
	}
	for first := range 256 {
		for second := range 256 {
			b := []byte{byte(first), byte(second), 1}
			for have := range len(b) + 1 {
				for rest := range int64(4) {
					v1, ok1, left1, rest1, failed1 := read(b[:have], rest, (*Walker).varint)
					v2, ok2, left2, rest2, failed2 := read(b[:have], rest, (*Walker).longVarint)
					if v1 != v2 || ok1 != ok2 || left1 != left2 || rest1 != rest2 || failed1 != failed2 {
						t.Fatalf("% x with %d left of the record: %d %v %d %d %v, want %d %v %d %d %v", b[:have], rest, v1, ok1, left1, rest1, failed1, v2, ok2, left2, rest2, failed2)
					}
				}
			}
		}
	}
}
