package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// relay is a server between a producer and a reader.
type relay interface {
	producer() *kgo.Client
	address() string
	commits() uint64
	close() error
}

// relayNode is Varve's.
type relayNode struct{ *servedVarve }

func openRelayNode(dir string, sync bool) (relay, error) {
	s, err := openNode(dir, sync)
	return relayNode{s}, err
}

func (n relayNode) producer() *kgo.Client { return n.client }
func (n relayNode) address() string       { return n.servedVarve.address }

// relayed measures one record at a time, from the call of its producer to the moment that a waiting
// reader has it.
func relayed(open func(dir string, sync bool) (relay, error), dir string, sync bool, length time.Duration) (out measurement, err error) {
	err = inDir(dir, func(dir string) error {
		s, err := open(dir, sync)
		if err != nil {
			return err
		}
		c, err := newReader(s.address(), kgo.NewOffset().AtStart())
		if err != nil {
			return err
		}
		arrived := make(chan arrival, 1)
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			for ctx.Err() == nil {
				c.PollFetches(ctx).EachRecord(func(r *kgo.Record) { arrived <- arrival{time.Now(), r.Value} })
			}
		}()
		settle()
		var latency histogram
		rec := records(1, 1, recordBytes)[0]
		from := now()
		for err == nil && time.Since(from.at) < length {
			binary.LittleEndian.PutUint64(rec, latency.total)
			sent := time.Now()
			s.producer().Produce(ctx, &kgo.Record{Value: rec}, func(_ *kgo.Record, err error) {
				if err != nil {
					arrived <- arrival{}
				}
			})
			got := <-arrived
			if latency.add(got.at.Sub(sent)); !bytes.Equal(got.value, rec) {
				err = fmt.Errorf("got %d bytes, sent %d", len(got.value), len(rec))
			}
		}
		out = measure(from, now(), latency.total, latency.total*recordBytes, s.commits(), &latency)
		cancel()
		c.Close()
		return errors.Join(err, s.close())
	})
	return out, err
}

// arrival is a record as a reader has it.
type arrival struct {
	at    time.Time
	value []byte
}
