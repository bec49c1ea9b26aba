package main

import (
	"sync"

	"github.com/tidwall/wal"
)

// tidwallStore is github.com/tidwall/wal. The caller numbers the entries, so appends take turns.
// Its format has no checksum: its reads verify nothing.
type tidwallStore struct {
	counter
	mu   sync.Mutex
	log  *wal.Log
	last uint64
	b    wal.Batch
}

func openTidwall(dir string, sync bool) (store, error) {
	o := *wal.DefaultOptions
	o.NoSync = !sync
	o.NoCopy = true
	log, err := wal.Open(dir, &o)
	if err != nil {
		return nil, err
	}
	last, err := log.LastIndex()
	return &tidwallStore{log: log, last: last}, err
}

func (s *tidwallStore) append(recs [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.Add(1)
	if len(recs) == 1 {
		s.last++
		return s.log.Write(s.last, recs[0])
	}
	s.b.Clear()
	for _, rec := range recs {
		s.last++
		s.b.Write(s.last, rec)
	}
	return s.log.WriteBatch(&s.b)
}

func (s *tidwallStore) read(count *tally) error {
	for i := uint64(1); i <= s.last; i++ {
		rec, err := s.log.Read(i)
		if err != nil {
			return err
		}
		count.add(rec)
	}
	return nil
}

func (s *tidwallStore) close() error { return s.log.Close() }
