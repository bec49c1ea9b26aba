package main

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleStore is a pebble database with an ascending 8-byte key. It has a group commit of its own.
type pebbleStore struct {
	db   *pebble.DB
	opts *pebble.WriteOptions
	last atomic.Uint64
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(f string, args ...any) {
	pebble.DefaultLogger.Fatalf(f, args...)
}

func openPebble(dir string, sync bool) (store, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: silent{}})
	if err != nil {
		return nil, err
	}
	return &pebbleStore{db: db, opts: &pebble.WriteOptions{Sync: sync}}, nil
}

func (s *pebbleStore) append(recs [][]byte) error {
	b := s.db.NewBatch()
	defer b.Close()
	last := s.last.Add(uint64(len(recs)))
	var key [8]byte
	for i, rec := range recs {
		binary.BigEndian.PutUint64(key[:], last-uint64(len(recs)-1-i))
		if err := b.Set(key[:], rec, nil); err != nil {
			return err
		}
	}
	return b.Commit(s.opts)
}

// commits is unknown: pebble does not say how many appends shared a sync.
func (s *pebbleStore) commits() uint64 { return 0 }

func (s *pebbleStore) read(count *tally) error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		count.add(it.Value())
	}
	return it.Close()
}

func (s *pebbleStore) close() error { return s.db.Close() }
