package main

import (
	"errors"
	"os"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
)

// etcdStore is etcd's write-ahead log: records are the entries of one term. The caller numbers the
// entries, so appends take turns.
type etcdStore struct {
	counter
	dir   string
	mu    sync.Mutex
	log   *wal.WAL // nil if the directory held a log: it can be read only
	state *raftpb.HardState
	ents  []*raftpb.Entry
	last  uint64
}

func openEtcd(dir string, sync bool) (store, error) {
	s := &etcdStore{dir: dir + "/wal", state: &raftpb.HardState{}}
	if wal.Exist(s.dir) {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	log, err := wal.Create(nil, s.dir, nil)
	if err != nil {
		return nil, err
	}
	if !sync {
		log.SetUnsafeNoFsync()
	}
	s.log = log
	return s, nil
}

func (s *etcdStore) append(recs [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n.Add(1)
	for len(s.ents) < len(recs) {
		term, index := uint64(1), uint64(0)
		s.ents = append(s.ents, &raftpb.Entry{Term: &term, Index: &index})
	}
	for i, rec := range recs {
		s.last++
		*s.ents[i].Index = s.last
		s.ents[i].Data = rec
	}
	return s.log.Save(s.state, s.ents[:len(recs)])
}

func (s *etcdStore) read(count *tally) error {
	log, err := wal.OpenForRead(nil, s.dir, &walpb.Snapshot{})
	if err != nil {
		return err
	}
	_, _, ents, err := log.ReadAll()
	if err != nil {
		return err
	}
	for _, e := range ents {
		count.add(e.Data)
	}
	// A log opened for reading has no directory handle, and its Close says so after closing the rest.
	if err := log.Close(); !errors.Is(err, os.ErrInvalid) {
		return err
	}
	return nil
}

func (s *etcdStore) close() error {
	if s.log == nil {
		return nil
	}
	return s.log.Close()
}
