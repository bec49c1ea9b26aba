package cold_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"varve/core"
	"varve/sim/fakebucket"
	"varve/tiers/disk"
)

// reader reads on with what it knows, as a reader of a log does: with a View until that is of no use.
type reader struct {
	r    *rig
	view core.View
	c    core.Cursor
	h    disk.Handle
	next uint64
	gets int // fetches
}

func (r *rig) reader(from core.Offset) *reader {
	d := &reader{r: r, next: uint64(from)}
	d.c.Reset(core.Position{Offset: from})
	r.log.FillView(&d.view)
	return d
}

// read makes one fetch. It returns an error as a reader of the log gets it.
func (d *reader) read() error {
	d.r.t.Helper()
	f, err := d.c.Next(&d.view, d.r.log.Committed(), 4096)
	if err != nil || f == nil {
		return err
	}
	if f.Pos == 0 && f.Extent.Index == core.IndexCore {
		f.Pos, _, _ = d.r.log.Locate(f.Extent.Segment, f.From)
	}
	d.gets++
	if err := d.c.Complete(f, d.r.files.Fetch(f, &d.h)); err != nil {
		return err
	}
	_ = d.h.Close()
	for b, ok := d.c.Batch(); ok; b, ok = d.c.Batch() {
		got := binary.LittleEndian.Uint64(b.Payload)
		if uint64(b.Base) != d.next || got != d.next || !bytes.Equal(b.Payload[8:], make([]byte, 992)) {
			d.r.t.Fatalf("offset %d is record %d, want %d", b.Base, got, d.next)
		}
		d.next++
	}
	d.r.log.FillView(&d.view)
	return nil
}

// until reads up to an offset, or to an error.
func (d *reader) until(end uint64) error {
	d.r.t.Helper()
	for range 1000 {
		if d.next >= end {
			return nil
		}
		if err := d.read(); err != nil {
			return err
		}
	}
	d.r.t.Fatalf("the reader does not get on at %d", d.next)
	return nil
}

// TestXT1ReaderBesideAnEviction: files leave the disk because the bucket holds them, and readers read at every
// step of that with what they knew before it. None gets an error, none a record twice or out of order.
func TestXT1ReaderBesideAnEviction(t *testing.T) {
	for from := range core.Offset(10) {
		r := newRig(t, smallConfig())
		r.fill(12)
		r.pass(10 * second)
		var all []*reader
		r.step = func(core.Effect) {
			if len(all) < 20 {
				all = append(all, r.reader(from))
			}
			for i, d := range all {
				if i%3 == len(all)%3 && d.next < 12 { // not all of them at each step
					if err := d.read(); err != nil {
						t.Fatalf("at %d: %v", d.next, err)
					}
				}
			}
		}
		r.step(nil)
		r.offload()
		r.step = nil
		for _, d := range all {
			if err := d.until(12); err != nil {
				t.Fatalf("from %d, at %d: %v", from, d.next, err)
			}
		}
	}
}

// TestXT7ReaderOfWhatWasDeleted: a reader knows of objects that retention has removed since. It is told
// that what it wants was let go and where the log begins, and asks no more.
func TestXT7ReaderOfWhatWasDeleted(t *testing.T) {
	r := newRig(t, smallConfig())
	r.fill(20)
	r.offload()
	var all []*reader
	for from := range core.Offset(12) {
		all = append(all, r.reader(from))
	}
	r.trim(12)
	r.pass(120 * second)
	r.wantTidy()
	for from, d := range all {
		before := r.bucket.Calls(fakebucket.OpGet)
		err := d.until(20)
		var gone *core.TrimmedError
		if !errors.As(err, &gone) || gone.Requested != core.Offset(from) || gone.Start != 12 {
			t.Errorf("from %d: %v", from, err)
		}
		if n := r.bucket.Calls(fakebucket.OpGet) - before; n > 2 { // a footer, and an object
			t.Errorf("from %d: %d requests for what is not there", from, n)
		}
	}
	if err := r.reader(12).until(20); err != nil {
		t.Fatal(err)
	}
}

// TestXT9ObjectShorterThanListed: an object is shorter than the manifest says, or gone. A reader is told which one
// it is after a few requests; where the disk holds the records nobody notices.
func TestXT9ObjectShorterThanListed(t *testing.T) {
	for _, evicted := range []bool{false, true} {
		for _, cut := range []int{0, 100, 1200, 3000} {
			r := newRig(t, smallConfig())
			r.fill(12)
			r.pass(10 * second)
			if evicted {
				r.offload()
			}
			key := ""
			for i := range r.bucket.Len() {
				if k, body, there := r.bucket.At(i); there && len(k) > 40 {
					if key = k; cut == 0 {
						r.bucket.Expire(key)
					} else if !r.bucket.Cut(key, len(body)-min(cut, len(body))) {
						t.Fatal(key)
					}
					break
				}
			}
			before := r.bucket.Calls(fakebucket.OpGet)
			err := r.reader(0).until(12)
			var damage *core.CorruptError
			switch {
			case !evicted && err != nil:
				t.Errorf("%d cut, and the disk holds it: %v", cut, err)
			case evicted && !errors.As(err, &damage):
				t.Errorf("%d cut: %v", cut, err)
			case evicted && (damage.Tier != core.TierCold || damage.Object.Base != 0):
				t.Errorf("%d cut: %v names another object", cut, err)
			}
			if n := r.bucket.Calls(fakebucket.OpGet) - before; n > 6 {
				t.Errorf("%d requests until it says so", n)
			}
			if err := r.reader(4).until(12); err != nil {
				t.Errorf("the other objects: %v", err)
			}
		}
	}
}

// TestOS9BodiesCutShort: one in a hundred bodies ends before its time, is another range or has a flipped bit. A read fails then, or gives what was
// written: never another byte, never fewer.
func TestOS9BodiesCutShort(t *testing.T) {
	for _, fault := range []fakebucket.Fault{fakebucket.O8Error, fakebucket.O8Short, fakebucket.O8Range, fakebucket.O9Read} {
		r := newRig(t, smallConfig())
		r.fill(40)
		r.offload()
		var rates fakebucket.Rates
		rates[fakebucket.OpGet] = 1 << 16 / 100
		r.bucket.Seed(9)
		r.bucket.SetFaults(fakebucket.Set(fault))
		r.bucket.SetRates(&rates)
		for range 300 {
			d := r.reader(0)
			for d.next < 40 {
				if err := d.until(40); err != nil {
					if damage := (*core.CorruptError)(nil); errors.As(err, &damage) {
						t.Fatalf("%v: a good object is called damaged: %v", fault, err)
					}
					at := core.Offset(d.next)
					d = r.reader(at)
				}
			}
		}
		if n := r.bucket.Struck(fault); fault != fakebucket.O8Range && n < 50 {
			t.Fatalf("%v: only %d bodies", fault, n)
		}
	}
}
