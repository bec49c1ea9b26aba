package tiertest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
	"varve/tiers/disk"
)

// pureLog runs a core on any file system, one effect at a time, under a clock of its own: what it
// writes is a pure function of what it is asked.
type pureLog struct {
	t     *testing.T
	fs    disk.FS
	store *disk.Store
	log   *core.Log
	cfg   core.Config
	now   core.Now

	next     uint64   // content of the next append
	flying   []uint64 // contents of appends without an outcome, in order
	cohorts  []uint64
	acked    []uint64 // contents, in offset order
	refused  int      // appends that ended in a definite error
	outcomes string   // of the last pump
}

func newPureLog(t *testing.T, fs disk.FS, cfg core.Config) *pureLog {
	l := &pureLog{t: t, fs: fs, store: disk.NewStore(fs), log: new(core.Log), cfg: cfg}
	l.now = core.Now{Mono: 1, Wall: 1_700_000_000_000_000_000}
	return l
}

func pureConfig() core.Config {
	cfg := core.DefaultConfig()
	cfg.LogID, cfg.Nonce = segment.LogID{4, 5}, 6
	cfg.SegmentBytes, cfg.MaxBatchBytes, cfg.PendingBytes = 16<<10, 8<<10, 64<<10
	cfg.PrepareBytes, cfg.MinFreeBytes, cfg.IndexSpacingBytes = 4096, 0, 512
	return cfg
}

func (l *pureLog) pump() {
	l.t.Helper()
	l.outcomes = ""
	for range 100000 {
		busy := false
		for lane := range core.LaneCount {
			e := l.log.Next(l.now, lane)
			if e == nil {
				continue
			}
			busy = true
			err := l.store.Run(e)
			l.now.Mono += 1000
			l.now.Wall += 1000
			l.log.Complete(l.now, e, err)
			l.resolve()
		}
		if !busy {
			return
		}
	}
	l.t.Fatal("the core never comes to rest")
}

// resolve takes the outcomes there are.
func (l *pureLog) resolve() {
	l.t.Helper()
	for o, ok := l.log.NextOutcome(); ok; o, ok = l.log.NextOutcome() {
		l.outcomes += fmt.Sprintf("%d:%v ", o.Cohort, o.Err)
		for len(l.cohorts) > 0 && l.cohorts[0] == o.Cohort {
			switch {
			case o.Err == nil:
				l.acked = append(l.acked, l.flying[0])
			case errors.Is(o.Err, core.ErrUnknown):
				l.t.Fatal("an append of unknown outcome on a disk without a failed sync")
			default:
				l.refused++
			}
			l.flying, l.cohorts = l.flying[1:], l.cohorts[1:]
		}
	}
}

func (l *pureLog) pass(d core.Time) {
	l.t.Helper()
	l.now.Mono += d
	l.now.Wall += d
	l.log.Tick(l.now)
	l.pump()
}

func (l *pureLog) append(bytes int) error {
	payload := binary.LittleEndian.AppendUint64(nil, l.next)
	for len(payload) < bytes {
		payload = append(payload, byte(l.next)+byte(len(payload)))
	}
	b := core.Batch{
		Payload: payload, PayloadCRC: segment.PayloadCRC(payload), Kind: segment.KindRecords, Records: 1,
		Producer: core.NoProducer, MaxTime: l.now.Wall,
	}
	ticket, err := l.log.Append(l.now, &b)
	if err != nil {
		l.refused++
		return err
	}
	l.flying, l.cohorts = append(l.flying, l.next), append(l.cohorts, ticket.Cohort)
	l.next++
	return nil
}

func (l *pureLog) open() {
	l.t.Helper()
	if err := l.log.Reopen(l.cfg, l.now); err != nil {
		l.t.Fatal(err)
	}
	l.flying, l.cohorts = l.flying[:0], l.cohorts[:0]
	l.pump()
}

func (l *pureLog) mustOpen() {
	l.t.Helper()
	l.open()
	if l.log.Phase() != core.Ready {
		l.t.Fatalf("open ends in %v: %v", l.log.Phase(), l.log.Err())
	}
}

// kill ends a life with nothing in flight.
func (l *pureLog) kill() {
	l.t.Helper()
	if err := l.store.Close(); err != nil {
		l.t.Fatal(err)
	}
	if d, ok := l.fs.(*faultfs.FS); ok {
		d.Kill()
	}
	l.store.Reset(l.fs)
}

// contents reads everything from the log's start on.
func (l *pureLog) contents() (got []uint64) {
	l.t.Helper()
	var v core.View
	var c core.Cursor
	var h disk.Handle
	defer h.Close()
	l.log.FillView(&v)
	c.Reset(core.Position{Offset: v.Start})
	for {
		f, err := c.Next(&v, l.log.Committed(), 32<<10)
		if err != nil {
			l.t.Fatal(err)
		}
		if f == nil {
			return got
		}
		if err := c.Complete(f, l.store.Fetch(f, &h)); err != nil {
			l.t.Fatal(err)
		}
		for b, ok := c.Batch(); ok; b, ok = c.Batch() {
			n := binary.LittleEndian.Uint64(b.Payload)
			for i := 8; i < len(b.Payload); i++ {
				if b.Payload[i] != byte(n)+byte(i) {
					l.t.Fatalf("record %d: byte %d is wrong", n, i)
				}
			}
			got = append(got, n)
		}
	}
}

// wantAcked wants exactly what was acked, from the log's start on.
func (l *pureLog) wantAcked() {
	l.t.Helper()
	got, want := l.contents(), l.acked[l.log.Start():]
	if len(got) != len(want) {
		l.t.Fatalf("%d records from %d on, %d were acked", len(got), l.log.Start(), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			l.t.Fatalf("record %d holds %d, %d was acked", int(l.log.Start())+i, got[i], want[i])
		}
	}
}
