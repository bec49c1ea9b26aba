package varve

import (
	"cmp"

	"varve/core"
)

// Trouble is what keeps a log from what it is to do; the zero value is none.
type Trouble struct {
	Cold    error // why the bucket does not answer; one failure is none
	Warm    error // why the warm tier does not answer, or that it is behind for too long
	NoSpace bool  // appends are refused for want of space on disk
}

// Trouble returns what is wrong now. It costs little while nothing is.
func (l *Log) Trouble() (t Trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.core.Phase() >= core.Closing {
		return t
	}
	if l.coldFails >= tierFailsMax {
		t.Cold = l.core.Stats().ColdError
	}
	if _, failure := l.core.WarmTrouble(); l.warmFails.fails >= tierFailsMax {
		t.Warm = failure
	} else if l.core.WarmStalled() {
		t.Warm = cmp.Or(failure, errBehind)
	}
	t.NoSpace = l.core.LowSpace()
	return t
}
