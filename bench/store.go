package main

import "sync/atomic"

// store is one log under test. append may be called from several goroutines; everything else from
// one at a time.
type store interface {
	// append adds the records in order, as one batch where the store has such a thing. It returns
	// when they are as durable as the store was opened for. The slices are the caller's again then.
	append(recs [][]byte) error
	// commits returns how many times a batch of records was handed to the device, 0 if unknown.
	commits() uint64
	// read goes over the whole log from its start, verifying what the store can verify.
	read(count *tally) error
	close() error
}

// tally counts what a read delivered; its sum keeps the compiler from dropping the loop.
type tally struct {
	records uint64
	bytes   uint64
	sum     uint64
}

func (t *tally) add(rec []byte) {
	t.records++
	t.bytes += uint64(len(rec))
	t.sum += uint64(rec[0]) + uint64(rec[len(rec)-1])
}

// contender is a way to open a store.
type contender struct {
	name string

	open func(dir string, sync bool) (store, error)
}

// peers are the stores that Varve is compared with, as shipped.
var peers = []contender{
	{name: "tidwall", open: openTidwall},
	{name: "pebble", open: openPebble},
	{name: "etcd", open: openEtcd},
}

// contenders returns Varve and every peer, and where asked the peers behind the wrapper.
func contenders(grouped bool) []contender {
	all := append([]contender{}, ours...)
	all = append(all, peers...)
	for _, p := range peers {
		if grouped {
			all = append(all, contender{name: p.name + "+group", open: func(dir string, sync bool) (store, error) {
				s, err := p.open(dir, sync)
				if err != nil {
					return nil, err
				}
				return newGroup(s), nil
			}})
		}
	}
	return all
}

// counter is embedded by stores that make exactly one commit an append.
type counter struct{ n atomic.Uint64 }

func (c *counter) commits() uint64 { return c.n.Load() }
