package kafka

import (
	"sync/atomic"

	"varve"
	"varve/broker"
	"varve/broker/kafka/batch"
	"varve/broker/kafka/verdict"
)

// readers are those of one connection: a client fetches a partition in order, so the reader that
// served it last stands where it goes on.
type readers struct {
	broker      *broker.Broker
	byPartition map[*broker.Partition]*reader
	clock       uint64
}

// Each reader holds an open file and a buffer: so many are kept by a connection, and by the process; beyond that, and
// beyond the files that the node has for them, one by each connection.
const (
	readersMax     = 256
	readersAllMax  = 2048
	readAheadBytes = 128 << 10
	longBatchBytes = 1 << 20 // a reader that has read one is not kept, for its buffer
)

var readersOpen atomic.Int64

// reader reads batches of one log, and holds the one that was read and not sent.
type reader struct {
	log  *varve.Log
	r    *varve.Reader
	have bool
	lost bool // view stands for records that are lost
	view varve.BatchView
	used uint64
	long bool
}

// of returns a reader of a partition's log that stands at an offset.
func (rs *readers) of(p *broker.Partition, log *varve.Log, offset int64) *reader {
	r := rs.byPartition[p]
	if r != nil && r.log != log {
		rs.forget(p, r)
		r = nil
	}
	if r == nil {
		rs.makeRoom()
		r = &reader{log: log, r: log.NewReader(varve.Position{Offset: offset}, varve.ReadOptions{Bytes: readAheadBytes})}
		rs.byPartition[p] = r
		readersOpen.Add(1)
	}
	rs.clock++
	r.used = rs.clock
	switch {
	case r.have && r.view.Span.First <= offset && offset < r.view.Span.End:
	case !r.have && r.r.Position().Offset == offset:
	default:
		r.have = false
		r.r.Seek(varve.Position{Offset: offset})
	}
	return r
}

// peek returns the next batch without passing it.
func (r *reader) peek() (*varve.BatchView, error) {
	if !r.have {
		var err error
		r.view, r.have, err = r.r.Poll()
		if at, end, gap := verdict.Gap(err, r.log.Committed()); gap {
			r.overLost(at, end)
			return &r.view, nil
		}
		if err != nil {
			return nil, err
		}
		r.lost = false
		if !r.have {
			return nil, nil
		}
		r.long = r.long || len(r.view.Payload) > longBatchBytes
	}
	return &r.view, nil
}

// overLost puts an empty batch in the place of records that are lost, and goes on behind them.
func (r *reader) overLost(at, end int64) {
	r.view = varve.BatchView{
		Span: varve.Span{First: at, End: end}, Epoch: r.log.EpochOf(at), Kind: varve.KindKafka, Payload: batch.Empty(uint32(end-at), -1),
	}
	r.have, r.lost = true, true
	r.r.Seek(varve.Position{Offset: end})
}

// makeRoom forgets the reader that was idle longest, if there are enough.
func (rs *readers) makeRoom() {
	if len(rs.byPartition) == 0 {
		return
	}
	if most := min(readersAllMax, int64(rs.broker.Connections())); len(rs.byPartition) < readersMax && readersOpen.Load() < most {
		return
	}
	var oldest *broker.Partition
	for p, r := range rs.byPartition {
		if oldest == nil || r.used < rs.byPartition[oldest].used {
			oldest = p
		}
	}
	rs.forget(oldest, rs.byPartition[oldest])
}

func (rs *readers) forget(p *broker.Partition, r *reader) {
	_ = r.r.Close()
	delete(rs.byPartition, p)
	readersOpen.Add(-1)
}

// sweep forgets readers whose log is not the partition's any more, and those with long buffers.
func (rs *readers) sweep() {
	for p, r := range rs.byPartition {
		if r.long || p.Log() != r.log {
			rs.forget(p, r)
		}
	}
}

func (rs *readers) close() {
	for p, r := range rs.byPartition {
		rs.forget(p, r)
	}
}
