//go:build !mutant

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"varve"
	"varve/core"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/cold/scrub"
)

// tieredMost bounds step 6, which takes seconds: a server that hangs ends it.
const tieredMost = 2 * time.Minute

// tiered is step 6: a log in three tiers, of which an object and a file are damaged and the disk is lost.
func (d *demo) tiered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tieredMost)
	defer cancel()
	s := &demoServers{}
	defer s.stop()
	var err error
	if d.tools == (demoTools{}) {
		err = s.embedded(ctx)
	} else {
		err = s.real(ctx, d.tools, d.root)
	}
	if err != nil {
		return err
	}
	d.say("%s", s.said)
	t := newDemoTiers(d, s)
	for _, step := range []func(context.Context) error{
		t.life(t.first), t.damageObject, t.life(t.healed), t.loseDisk, t.life(t.rebuilt),
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// demoTiers is a log in three tiers.
type demoTiers struct {
	d       *demo
	servers *demoServers
	dir     string
	options varve.Options
	records int
}

func newDemoTiers(d *demo, s *demoServers) *demoTiers {
	return &demoTiers{d: d, servers: s, dir: filepath.Join(d.root, demoLog), options: varve.Options{
		SegmentBytes: 32 << 10, MinFreeBytes: -1, Cold: s.bucket, ColdPrefix: demoLog + "/", Warm: s.warm,
	}}
}

// life opens the log, does something with it, and closes it.
func (t *demoTiers) life(do func(context.Context, *varve.Log) error) func(context.Context) error {
	return func(ctx context.Context) error {
		t.options.Create = t.records == 0
		l, err := varve.Open(ctx, t.dir, t.options)
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, l), l.Close(ctx))
	}
}

// append appends records, and verifies that those that were acked are in the warm tier.
func (t *demoTiers) append(ctx context.Context, l *varve.Log, n int) error {
	var last varve.Pending
	for i := range n {
		var err error
		if last, err = l.AppendAsync(varve.Record{Value: demoValue(0, 0, t.records)}); err != nil {
			return err
		}
		t.records++
		if (i+1)%50 == 0 || i == n-1 {
			if _, err := last.Wait(ctx); err != nil {
				return err
			}
		}
	}
	if s := l.Stats(); s.WarmEnd != int64(t.records) || s.WarmWaived > 0 {
		return fmt.Errorf("%d records are acked, and the warm tier holds [%d, %d)", t.records, s.WarmFrom, s.WarmEnd)
	}
	if t.servers.replica == "" {
		return nil
	}
	newest, err := t.servers.newestOfReplica(ctx)
	if err == nil && !strings.Contains(newest, string(demoValue(0, 0, t.records-1))) {
		err = fmt.Errorf("%d records are acked, and the replica does not hold the last one", t.records)
	}
	return err
}

// exported rolls, and waits until the bucket holds everything.
func (t *demoTiers) exported(ctx context.Context, l *varve.Log) error {
	if err := l.Roll(ctx); err != nil {
		return err
	}
	return await(ctx, "a bucket that holds everything", func() (bool, error) {
		return l.Stats().Exported == int64(t.records), l.Err()
	})
}

// check reads everything, and draws the map.
func (t *demoTiers) check(ctx context.Context, l *varve.Log, what string) error {
	if err := checkLives(l.Records(ctx, varve.Position{}), 1, t.records); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	t.draw(l.TierMap(demoLog, "S3"), what)
	return nil
}

// draw draws a map as varve log tiers does.
func (t *demoTiers) draw(m varve.TierMap, what string) {
	t.d.say("%s", what)
	for line := range strings.Lines(m.String()) {
		t.d.say("   %s", strings.TrimRight(line, "\n"))
	}
}

// first is the life that fills the tiers.
func (t *demoTiers) first(ctx context.Context, l *varve.Log) error {
	if err := errors.Join(t.append(ctx, l, 2000), t.exported(ctx, l)); err != nil {
		return err
	}
	if err := await(ctx, "a Valkey that lets older records go", func() (bool, error) { return l.Stats().WarmFrom > 0, l.Err() }); err != nil {
		return err
	}
	if s := l.Stats(); s.WarmEnd-s.WarmFrom < 500 {
		return fmt.Errorf("the warm tier holds [%d, %d): want 10 segments", s.WarmFrom, s.WarmEnd)
	}
	acked := "Valkey had each"
	if t.servers.replica != "" {
		acked = "Valkey and its replica had each"
	}
	return t.check(ctx, l, "2,000 records; "+acked+" before its ack, and keeps the newest; the bucket has each segment that is full:")
}

// unseen is the progress of a scrub that takes no time.
func unseen(_, _ int64) {}

// damageObject damages an object whose records are on disk still. It is found and named, by a scrub and by
// a reader that has nothing else.
func (t *demoTiers) damageObject(ctx context.Context) error {
	r, err := scrub.Run(ctx, t.options.Cold, t.options.ColdPrefix, unseen)
	switch {
	case err != nil:
		return err
	case len(r.Anomalies) > 0:
		return fmt.Errorf("scrub of a whole bucket: %v", &r.Anomalies[0])
	}
	e := &r.Manifest.Segments[len(r.Manifest.Segments)/2]
	key := string(e.AppendKey(nil))
	hit, err := t.flipObject(ctx, key, &segment.ScanFile{Bytes: e.Bytes, ID: e.ID, Base: e.Base, LogID: r.Manifest.LogID, SectorBytes: 512})
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	t.d.say("one bit flipped in the object of offsets [%d, %d). varve cold scrub:", e.Base, e.End)
	if r, err = scrub.Run(ctx, t.options.Cold, t.options.ColdPrefix, unseen); err != nil {
		return err
	}
	if len(r.Anomalies) != 1 || r.Anomalies[0].Key != key || r.Anomalies[0].Name != scrub.Checksum || !r.Damaged() {
		return fmt.Errorf("scrub of a bucket with a damaged object %s: %+v", key, r.Anomalies)
	}
	t.d.say("   %v", &r.Anomalies[0])
	found := int64(0)
	for _, err = range t.bucketAlone(ctx) {
		if err != nil {
			break
		}
		found++
	}
	var typed *varve.CorruptError
	if !errors.As(err, &typed) || typed.Tier != core.TierCold || typed.Offset != hit.base || found != hit.base {
		return fmt.Errorf("%d records read from a bucket that is damaged at offset %d, and then: %w", found, hit.base, err)
	}
	t.d.say("a reader that has only the bucket gets the %s records before it, then: %s", group(found), strings.TrimPrefix(typed.Error(), "core: "))
	t.options.ColdPrefix, t.options.AcceptLoss = demoLog+"-2/", true
	return nil
}

// flipObject flips a bit in a batch in the middle of an object.
func (t *demoTiers) flipObject(ctx context.Context, key string, f *segment.ScanFile) (hit batchPlace, err error) {
	key = t.options.ColdPrefix + key
	body := make([]byte, f.Bytes)
	n, o, err := t.options.Cold.Get(ctx, key, 0, body)
	if err != nil || n < len(body) {
		return hit, fmt.Errorf("read %d of %d bytes: %w", n, len(body), err)
	}
	f.Source = bytes.NewReader(body)
	batches, err := scanBatches(key, f)
	if err != nil || len(batches) == 0 {
		return hit, fmt.Errorf("%d batches: %w", len(batches), err)
	}
	hit = batches[len(batches)/2]
	body[(hit.pos+hit.end)/2] ^= 0x10
	_, err = t.options.Cold.Put(ctx, key, body, tiers.Condition{Tag: o.Tag})
	return hit, err
}

// bucketAlone reads what the bucket holds, without a disk or a Valkey.
func (t *demoTiers) bucketAlone(ctx context.Context) func(yield func(varve.Record, error) bool) {
	return func(yield func(varve.Record, error) bool) {
		x, err := varve.Inspect(ctx, filepath.Join(t.d.root, "absent"), varve.InspectOptions{Cold: t.options.Cold, ColdPrefix: t.options.ColdPrefix})
		if err != nil {
			yield(varve.Record{}, err)
			return
		}
		x.Records(ctx, varve.Position{})(yield)
	}
}

// healed is the life in which the bucket is made whole again and the disk is emptied.
func (t *demoTiers) healed(ctx context.Context, l *varve.Log) error {
	if l.Start() != 0 {
		return fmt.Errorf("records before offset %d were given up", l.Start())
	}
	if err := t.exported(ctx, l); err != nil {
		return err
	}
	r, err := scrub.Run(ctx, t.options.Cold, t.options.ColdPrefix, unseen)
	if err != nil {
		return err
	}
	if len(r.Anomalies) > 0 {
		return fmt.Errorf("scrub of what was exported again: %v", &r.Anomalies[0])
	}
	if err := checkLives(t.bucketAlone(ctx), 1, t.records); err != nil {
		return fmt.Errorf("what was exported again: %w", err)
	}
	t.d.say("the log opened with another cold.name, for once with accept_loss: what is on disk is exported again, nothing is lost,")
	t.d.say("a scrub verifies %d objects and finds nothing wrong, and the bucket alone serves all %s records", r.Objects, group(uint64(t.records)))
	if err := l.Offload(ctx, 1500); err != nil {
		return err
	}
	if s := l.Stats(); s.HotStart == 0 || s.HotStart > 1500 {
		return fmt.Errorf("the disk begins at offset %d, want one above 0, up to 1500", s.HotStart)
	}
	if err := t.check(ctx, l, "what lies before offset 1,500 leaves the disk; a reader still sees all of it:"); err != nil {
		return err
	}
	if err := t.damageFile(ctx, l, r.Manifest.LogID); err != nil {
		return err
	}
	t.options.AcceptLoss = false
	if err := t.append(ctx, l, 100); err != nil {
		return err
	}
	if s := l.Stats(); s.Exported != 2000 {
		return fmt.Errorf("the bucket holds what is before %d, want 2000: nothing sealed the segment", s.Exported)
	}
	return t.check(ctx, l, "100 records more; their segment is not full, so they are on disk and in Valkey alone:")
}

// damageFile damages a file whose records are in the bucket. It is found, served around, and healed.
func (t *demoTiers) damageFile(ctx context.Context, l *varve.Log, log segment.LogID) error {
	files, err := segmentsIn(t.dir)
	if err != nil {
		return err
	}
	start := l.Stats().HotStart
	for len(files) > 0 && filepath.Base(files[0]) < segment.Name(start, 0) { // about to be removed
		files = files[1:]
	}
	if len(files) == 0 {
		return errors.New("no segment is left on disk")
	}
	batches, err := batchesOf(files[0], log)
	switch {
	case err != nil:
		return err
	case len(batches) == 0:
		return fmt.Errorf("no batch in %s", files[0])
	}
	hit := batches[len(batches)/2]
	if err := flip(hit.file, (hit.pos+hit.end)/2); err != nil {
		return err
	}
	what := fmt.Sprintf("one bit flipped in %s", filepath.Base(hit.file))
	if err := checkLives(l.Records(ctx, varve.Position{}), 1, t.records); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if s := l.Stats(); s.Corruptions == 0 {
		return errors.New("nobody met the damage")
	}
	if err := await(ctx, "a file that is healed", func() (bool, error) {
		before := l.Stats().ReadBytes[core.TierCold]
		for _, err := range l.Records(ctx, varve.Position{Offset: start}) {
			if err != nil {
				return false, err
			}
		}
		return l.Stats().ReadBytes[core.TierCold] == before, nil
	}); err != nil {
		return err
	}
	t.d.say("%s on disk: the reader met it, got the same records from the bucket, and they are back on disk now", what)
	return nil
}

// loseDisk deletes the directory, and looks at what the other tiers hold.
func (t *demoTiers) loseDisk(ctx context.Context) error {
	if err := os.RemoveAll(t.dir); err != nil {
		return err
	}
	x, err := varve.Inspect(ctx, t.dir, varve.InspectOptions{Cold: t.options.Cold, ColdPrefix: t.options.ColdPrefix, Warm: t.options.Warm})
	if err != nil {
		return err
	}
	cold := int64(0)
	for i := range x.Cold {
		cold = max(cold, x.Cold[i].End)
	}
	if x.End != int64(t.records) || x.WarmEnd != x.End || x.WarmFrom == 0 || x.WarmFrom > cold || cold == x.End {
		return fmt.Errorf("without the disk the log ends at %d, the bucket holds [0, %d) and Valkey [%d, %d): want %d records, all of them in neither",
			x.End, cold, x.WarmFrom, x.WarmEnd, t.records)
	}
	t.draw(x.TierMap(demoLog, "S3"), "the directory deleted; neither the bucket nor Valkey has all of it:")
	return nil
}

// rebuilt is the life after the disk was lost.
func (t *demoTiers) rebuilt(ctx context.Context, l *varve.Log) error {
	if err := t.check(ctx, l, fmt.Sprintf("opened again: rebuilt from both, with all %s records:", group(uint64(t.records)))); err != nil {
		return err
	}
	if err := errors.Join(t.append(ctx, l, 500), t.exported(ctx, l)); err != nil {
		return err
	}
	return t.check(ctx, l, "500 records more; the log goes on:")
}
