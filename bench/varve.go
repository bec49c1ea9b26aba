package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"varve"
)

// ours is Varve.
var ours = []contender{{name: ourName, open: openVarve}}

// varveStore is a Varve log with default options, but for the fsync mode.
type varveStore struct {
	log  *varve.Log
	recs sync.Pool // of *[]varve.Record
}

func openVarve(dir string, sync bool) (store, error) {
	o := varve.Options{Fsync: varve.None}
	if sync {
		o.Fsync = varve.OnCommit
	}
	log, err := varve.Open(context.Background(), dir, o)
	if err != nil {
		return nil, err
	}
	s := &varveStore{log: log}
	s.recs.New = func() any { return new([]varve.Record) }
	return s, nil
}

func (s *varveStore) append(recs [][]byte) error {
	list := s.recs.Get().(*[]varve.Record)
	defer s.recs.Put(list)
	*list = (*list)[:0]
	for _, rec := range recs {
		*list = append(*list, varve.Record{Value: rec})
	}
	_, err := s.log.Append(context.Background(), *list...)
	return err
}

func (s *varveStore) commits() uint64 { return s.log.Stats().Commits }

func (s *varveStore) read(count *tally) error {
	for rec, err := range s.log.Records(context.Background(), varve.Position{}) {
		if err != nil {
			return err
		}
		count.add(rec.Value)
	}
	return nil
}

func (s *varveStore) close() error { return s.log.Close(context.Background()) }

// asyncWindow is how many appends pass between two whose outcome is kept to wait for.
const asyncWindow = 1024

// async measures one goroutine that appends single records without waiting, as fast as the log
// takes them. The time ends when the last one is acked.
func async(dir string, length time.Duration) (out measurement, err error) {
	err = inDir(dir, func(dir string) error {
		s, err := openVarve(filepath.Clean(dir), false)
		if err != nil {
			return err
		}
		log := s.(*varveStore).log
		settle()
		before, from := s.commits(), now()
		records, err := pour(log, length)
		out = measure(from, now(), records, records*recordBytes, s.commits()-before, &histogram{})
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
		return readBack(ours[0], dir, records)
	})
	return out, err
}

// pour appends until the time or the bytes are used up, and waits for all. Where the log has too
// much pending it waits for the oldest that it kept.
func pour(log *varve.Log, length time.Duration) (n uint64, err error) {
	var stop atomic.Bool
	defer time.AfterFunc(length, func() { stop.Store(true) }).Stop()
	ctx := context.Background()
	rec := records(1, 1, recordBytes)[0]
	var kept []varve.Pending
	var last varve.Pending
	for !stop.Load() && n < runBytesMax/recordBytes {
		p, err := log.AppendAsync(varve.Record{Value: rec})
		switch {
		case errors.Is(err, varve.ErrOverloaded) && len(kept) > 0:
			if _, err := kept[0].Wait(ctx); err != nil {
				return n, err
			}
			kept = kept[1:]
			continue
		case err != nil:
			return n, err
		}
		last = p
		if n++; n%asyncWindow == 0 {
			kept = append(kept, p)
		}
	}
	_, err = last.Wait(ctx)
	return n, err
}
