package cold_test

import (
	"errors"
	"testing"

	"varve/core"
	"varve/faultfs"
	"varve/sim/fakebucket"
	"varve/tiers/cold"
	"varve/tiers/cold/scrub"
	"varve/tiers/disk"
)

// beside is another owner of the same log: with the bucket, and another disk.
func (r *rig) beside() *rig {
	r.t.Helper()
	x := &rig{t: r.t, options: r.options, disk: faultfs.New(), bucket: r.bucket, now: r.now}
	x.sees = witness{Bucket: r.bucket, r: x, put: r.sees.put}
	x.files = disk.NewStore(x.disk.FS(0))
	x.cold = cold.NewStore(&x.sees, "log/", x.files, r.options)
	x.files.SetObjects(x.cold)
	x.log = new(core.Log)
	cfg := r.cfg
	cfg.Nonce += 100
	x.open(cfg)
	x.acked = uint64(x.log.Committed())
	x.next = x.acked
	return x
}

// TestCC6OwnerPausedAtEachRequest: an owner is paused before each of its requests in turn, for longer than any
// lease, while another one takes the log over, writes, exports and deletes. Then it goes on: it is fenced, and
// what the new owner has published stays whole.
func TestCC6OwnerPausedAtEachRequest(t *testing.T) {
	for n := 1; ; n++ {
		r := newRig(t, smallConfig())
		r.fill(9)
		r.pass(10 * second)
		var next *rig
		left := n
		r.sees.before = func(fakebucket.Op, string) error {
			if left--; left != 0 {
				return nil
			}
			next = r.beside()
			next.pass(3600 * second)
			next.fill(7)
			next.trim(next.log.Start() + 3)
			next.pass(600 * second)
			next.readAll()
			return nil
		}
		for range 6 {
			if r.log.Err() == nil {
				r.append()
			}
		}
		if r.log.Err() == nil {
			_ = r.log.Trim(r.now, 5)
		}
		r.pass(300 * second)
		if next == nil {
			if n < 10 {
				t.Fatalf("only %d requests", n)
			}
			return
		}
		if !errors.Is(r.log.Err(), core.ErrOwnerFenced) {
			t.Fatalf("paused at request %d: %v", n, r.log.Err())
		}
		next.fill(4)
		next.offload()
		next.pass(300 * second)
		next.readAll()
		next.scrub() // the paused put of an object may have come after all
		next.wantTidy()
	}
}

// scrub deletes what nothing lists.
func (r *rig) scrub() {
	r.t.Helper()
	report, err := scrub.Run(r.t.Context(), r.bucket, "log/", func(int64, int64) {})
	if err == nil {
		_, err = report.Repair(r.t.Context(), r.bucket, 0)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
