package warm

import (
	"errors"
	"fmt"

	"varve/core"
	"varve/core/segment"
	"varve/core/warmentry"
	"varve/tiers/disk"
	"varve/tiers/valkey"
)

// Store carries out effects on the stream of one log. The effects of the Warm lane run one after the
// other; Entries may be used beside them, by one caller at a time.
type Store struct {
	stream *valkey.Store // of the Warm lane
	side   *valkey.Store // of Entries, which a WAIT must not hold up
	files  *disk.Store

	cursor core.Cursor
	view   core.View
	handle disk.Handle
	value  []byte // of the entry that is built

	identity [segment.IdentityBytes]byte // scratch of gather

	probe  valkey.Probe
	fence  valkey.Fence
	mirror valkey.Mirror
	read   valkey.ReadWarm
	refill refill
}

// NewStore returns a store. Both streams are of the same log; what is mirrored is read through files.
func NewStore(stream, side *valkey.Store, files *disk.Store) *Store {
	return &Store{stream: stream, side: side, files: files, mirror: valkey.Mirror{Entries: make([]valkey.Outgoing, 1)}}
}

// Reset points the store at another life of the log.
func (s *Store) Reset(files *disk.Store) {
	s.files = files
	s.handle.Forget()
	s.cursor.Reset(core.Position{})
	s.lose()
}

// Close gives connections and files up.
func (s *Store) Close() error {
	return errors.Join(s.stream.Close(), s.side.Close(), s.handle.Close())
}

// lose gives the connections up, after which nothing of them arrives any more.
func (s *Store) lose() { _, _ = s.stream.Close(), s.side.Close() }

// Run carries out an effect.
func (s *Store) Run(e core.Effect) error {
	_, err := s.Step(e)
	return err
}

// Step carries out an effect, in one pipeline of commands.
func (s *Store) Step(e core.Effect) (done bool, err error) {
	r := e.Result()
	switch e := e.(type) {
	case *core.ProbeWarm:
		err = s.runProbe(r, e)
	case *core.FenceWarm:
		err = s.runFence(r, e)
	case *core.ReadWarm:
		err = s.runRead(r, e)
	case *core.Mirror:
		err = s.runMirror(r, e)
	case *core.TrimWarm:
		err = s.runTrim(r, e)
	default:
		panic(fmt.Sprintf("warm: unknown effect %T", e))
	}
	r.Stage++
	return true, err
}

func failed(r *core.Result, step core.Step, err error) error {
	r.Failed = step
	return err
}

func (s *Store) runProbe(r *core.Result, e *core.ProbeWarm) error {
	p := &s.probe
	p.Replicas = e.Replicas
	e.Top.State = core.WarmNone
	if err := s.stream.Probe(p); err != nil {
		if wrong := (*valkey.TypeError)(nil); errors.As(err, &wrong) {
			e.Top = core.WarmEntry{State: core.WarmForeign, Header: e.Top.Header}
			return nil
		}
		return failed(r, core.StepRead, err)
	}
	found(&e.Top, &p.Top)
	e.LastID, e.Unsafe = core.WarmID(p.LastID), uint32(p.Findings)
	return nil
}

func (s *Store) runFence(r *core.Result, e *core.FenceWarm) (err error) {
	f := &s.fence
	if f.Marker, err = warmentry.AppendHeader(f.Marker[:0], &e.Marker); err != nil {
		return failed(r, core.StepWrite, err)
	}
	f.Generation, f.Ack = e.Marker.Generation, valkey.Ack{Replicas: e.Replicas, Wait: e.Wait}
	if err := s.stream.Fence(f); err != nil {
		return failed(r, core.StepWrite, err)
	}
	found(&e.Top, &f.Top)
	e.Confirmed, e.On = f.Confirmed, core.WarmConn(f.On)
	if e.Refusal, err = s.refusal("fence", &f.XADD); err != nil {
		return failed(r, core.StepWrite, err)
	}
	return nil
}

// pageEntries is how many entries a page is asked for at first.
const pageEntries = 64

func (s *Store) runRead(r *core.Result, e *core.ReadWarm) error {
	s.read.Front = e.Front
	if err := page(s.stream, &s.read, valkey.ID(e.From)); err != nil {
		return failed(r, core.StepRead, err)
	}
	if e.Front {
		found(&e.First, &s.read.First)
	}
	e.More = s.read.More
	for i := range s.read.Entries {
		if len(e.Entries) < cap(e.Entries) {
			e.Entries = e.Entries[:len(e.Entries)+1]
		} else {
			e.Entries = append(e.Entries, core.WarmEntry{})
		}
		found(&e.Entries[i], &s.read.Entries[i])
	}
	return nil
}

// page reads as many entries as fit.
func page(s *valkey.Store, r *valkey.ReadWarm, from valkey.ID) error {
	r.From = from
	for r.Count = pageEntries; ; r.Count = max(r.Count/4, 1) {
		err := s.ReadWarm(r)
		if err == nil || r.Count == 1 || !errors.Is(err, valkey.ErrReplyTooLarge) {
			return err
		}
	}
}

func (s *Store) runTrim(r *core.Result, e *core.TrimWarm) error {
	t := valkey.TrimWarm{Below: valkey.ID(e.Below)}
	if err := s.stream.TrimWarm(&t); err != nil {
		return failed(r, core.StepWrite, err)
	}
	if t.XTRIM.Outcome != valkey.Done {
		return failed(r, core.StepWrite, s.refused("trim", &t.XTRIM))
	}
	return nil
}

// found says what was found of an entry: it counts only if its header and all of its batches verify,
// and the batches are of one epoch.
func found(to *core.WarmEntry, e *valkey.Stored) {
	lineage := to.Header.Lineage[:0]
	*to = core.WarmEntry{ID: core.WarmID(e.ID), Bytes: int64(len(e.Value))}
	to.Header.Lineage = lineage
	switch {
	case !e.Found:
		to.State = core.WarmNone
	case e.Err == nil:
		to.Header = e.Header
		to.Header.Lineage = append(lineage, e.Header.Lineage...)
		if e.Header.Kind != warmentry.Data {
			break
		}
		if to.Epoch = batchesEpoch(e); to.Epoch == 0 {
			to.State = core.WarmDamaged
		}
	case errors.Is(e.Err, warmentry.ErrNewer):
		to.State = core.WarmNewer
	case errors.Is(e.Err, valkey.ErrForeign):
		to.State = core.WarmForeign
	default:
		to.State = core.WarmDamaged
	}
}

// batchesEpoch returns the epoch of an entry's batches, 0 if they do not verify or are of several.
func batchesEpoch(e *valkey.Stored) (epoch core.Epoch) {
	w := e.Header.Walk(e.Body)
	var i segment.Identity
	for {
		_, err := w.Next(&i)
		switch {
		case err != nil && !ended(err):
			return 0
		case err != nil:
			return epoch
		case epoch != 0 && i.Epoch != epoch:
			return 0
		}
		epoch = i.Epoch
	}
}

// refusal says what the server made of an entry. What the core has no word for is an error.
func (s *Store) refusal(op string, r *valkey.Refusal) (core.WarmRefusal, error) {
	switch r.Outcome {
	case valkey.Done:
		return core.WarmTaken, nil
	case valkey.Smaller:
		return core.WarmBehind, nil
	case valkey.Full:
		return core.WarmFull, nil
	}
	return core.WarmTaken, s.refused(op, r)
}

func (s *Store) refused(op string, r *valkey.Refusal) error {
	return &valkey.OpError{Op: op, Key: s.stream.Key(), Err: &valkey.ServerError{Outcome: r.Outcome, Text: r.Text}}
}
