package broker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"varve"
	"varve/core/topics"
	"varve/tiers/disk"
)

// Rebuilt is what RebuildCatalogue made, or would make, of what is left of a catalogue.
type Rebuilt struct {
	Topics []topics.Topic // of the new catalogue
	Read   int64          // entries that were read
	Lost   int64          // entries that could not be
	Notes  []string       // for a person to read
}

// RebuildCatalogue makes a catalogue that can be read of one that is damaged: of the entries that are left, and of
// the directories of partitions. Without apply it only says what it would do. The node must not be running. What it
// cannot know is lost: identities and configurations of topics whose entries are. It removes no partition.
// Errors: varve.ErrInUse, those of varve.Open about the catalogue.
func RebuildCatalogue(ctx context.Context, dir string, apply bool) (*Rebuilt, error) {
	return rebuildTree(ctx, &dirTree{dir: dir}, apply)
}

func rebuildTree(ctx context.Context, t tree, apply bool) (*Rebuilt, error) {
	fs, there, err := t.catalogue()
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("%s holds no %s: name the directory of a node", t.name(), catalogueName)
	}
	lock, err := t.lock()
	if err != nil {
		return nil, inUse(t.name(), err)
	}
	defer lock.Close() //nolint:errcheck // the process ends
	var s topics.Salvage
	r := new(Rebuilt)
	if err := r.read(ctx, fs, t, &s); err != nil {
		return nil, err
	}
	dirs, others, err := t.list(nil, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		s.Dir(d)
	}
	for _, o := range others {
		r.Notes = append(r.Notes, o+": it is no partition, and left alone")
	}
	var e topics.Entry
	r.Notes = append(r.Notes, s.Snapshot(&e, r.Lost, newProducers(), newID)...)
	r.Topics = e.Topics
	if !apply {
		return r, nil
	}
	return r, writeSnapshot(ctx, fs, t, &e)
}

func newID() (id topics.ID) {
	rand.Read(id[:]) //nolint:errcheck // it never fails
	return id
}

// newProducers returns where producer ids go on when it is not known which were given out: far above where a node
// comes by counting, and elsewhere each time, so that what two rebuilds give out does not meet.
func newProducers() int64 {
	var b [8]byte
	rand.Read(b[:]) //nolint:errcheck // it never fails
	return 1<<40 + int64(binary.BigEndian.Uint64(b[:])>>3)
}

// read takes what can be read of the entries.
func (r *Rebuilt) read(ctx context.Context, fs disk.FS, t tree, s *topics.Salvage) error {
	x, err := varve.InspectFS(ctx, fs, t.name()+"/"+catalogueName, false, varve.InspectOptions{})
	if err != nil {
		return err
	}
	for at := x.Start; at < x.End; {
		rec, err := firstFrom(ctx, x, at)
		var damage *varve.CorruptError
		switch {
		case errors.As(err, &damage):
			rec.Offset = max(at, damage.End-1)
			r.Lost += rec.Offset + 1 - at
		case err != nil:
			return err
		case s.Entry(rec.Value) != nil:
			r.Lost++
		default:
			r.Read++
		}
		at = rec.Offset + 1
	}
	return nil
}

// firstFrom returns the first record from an offset on.
func firstFrom(ctx context.Context, x *varve.Inspection, at int64) (varve.Record, error) {
	next, stop := iter.Pull2(x.Records(ctx, varve.Position{Offset: at}))
	defer stop()
	rec, err, ok := next()
	if !ok {
		return rec, fmt.Errorf("offset %d is not there", at)
	}
	return rec, err
}

// writeSnapshot appends the entry that says everything, and gives up what is before it.
func writeSnapshot(ctx context.Context, fs disk.FS, t tree, e *topics.Entry) error {
	o := catalogueOptions(nil)
	o.AllowDamaged, o.Existing = true, true
	l, err := varve.OpenFS(ctx, fs, t.name()+"/"+catalogueName, o)
	if err != nil {
		return err
	}
	text := topics.AppendEntry(nil, e)
	var back topics.Entry
	if err = new(topics.Reader).Read(text, &back); err == nil {
		err = new(topics.State).Apply(&back)
	}
	var span varve.Span
	if err == nil { // what was there goes only for what can be read
		span, err = l.Append(ctx, varve.Record{Value: text})
	}
	if err == nil {
		err = l.Trim(ctx, span.First)
	}
	return errors.Join(err, l.Close(ctx))
}
