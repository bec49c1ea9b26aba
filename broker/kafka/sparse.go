package kafka

import (
	"sync"
	"time"
)

// sparse says which of many things that happen is told in the log: the first, and then one for each
// sparsePause.
type sparse struct {
	mu      sync.Mutex
	told    time.Time
	skipped int64
}

const sparsePause = 10 * time.Second

// tell reports whether to tell this one, and how many before it were not told.
func (s *sparse) tell(now time.Time) (skipped int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.told.IsZero() && now.Sub(s.told) < sparsePause {
		s.skipped++
		return 0, false
	}
	skipped, s.skipped, s.told = s.skipped, 0, now
	return skipped, true
}
