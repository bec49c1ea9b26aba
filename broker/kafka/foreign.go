package kafka

import (
	"sync"
	"time"

	"varve"
	"varve/broker"
	"varve/broker/kafka/batch"
)

// foreign reports whether a batch of a partition's log is none of Kafka's: who writes to the directory
// beside the node may append anything.
func foreign(b *varve.BatchView) bool {
	if b.Kind != varve.KindKafka {
		return true
	}
	_, err := batch.Stored(b.Payload)
	return err != nil
}

// standIn puts an empty batch in the place of one that is none of Kafka's. Clients go on behind it: with an
// error they would stand before it for ever, and nobody could get them past it.
func (s *Server) standIn(p *broker.Partition, b *varve.BatchView) {
	if !foreign(b) {
		return
	}
	if s.strangers.tell(p.Dir, time.Now()) {
		s.o.Logger.Error("kafka: records that are none of Kafka's are in a partition; its clients are led past them; see them with varve log read --dir, and append to a node through its address only",
			"dir", p.Dir, "first", b.Span.First, "end", b.Span.End)
	}
	b.Kind, b.Payload = varve.KindKafka, batch.Empty(b.Records, b.MaxTime.UnixMilli())
}

// passed notes that a client was led past records that a repair declared lost.
func (s *Server) passed(p *broker.Partition, b *varve.BatchView) {
	s.counts.lost.Add(b.Span.End - b.Span.First)
	if s.gaps.tell(p.Dir, time.Now()) {
		s.o.Logger.Warn("kafka: a partition has records that a repair declared lost; its clients are led past them; varve log check lists them",
			"dir", p.Dir, "first", b.Span.First, "end", b.Span.End)
	}
}

// strangers are the partitions with such batches of which the log has been told lately.
type strangers struct {
	mu   sync.Mutex
	told map[string]time.Time // by directory
}

// strangersPause is how long a partition is not told of again: it stays as it is.
const strangersPause = 10 * time.Minute

func (s *strangers) tell(dir string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d, at := range s.told {
		if now.Sub(at) >= strangersPause {
			delete(s.told, d)
		}
	}
	if _, known := s.told[dir]; known {
		return false
	}
	if s.told == nil {
		s.told = make(map[string]time.Time)
	}
	s.told[dir] = now
	return true
}
