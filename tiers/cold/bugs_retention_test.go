package cold_test

import (
	"fmt"
	"strings"
	"testing"

	"varve/core"
	"varve/sim/fakebucket"
)

// TestRT1HoleInTheUploads: the uploads of one segment fail for long, those of every other one would not. What is
// exported ends before it, no file from there on leaves the disk, and a scan finds no hole.
func TestRT1HoleInTheUploads(t *testing.T) {
	cfg := smallConfig()
	cfg.LocalRetentionBytes = cfg.SegmentBytes
	r := newRig(t, cfg)
	down := true
	r.sees.before = func(op fakebucket.Op, key string) error {
		if down && op == fakebucket.OpPut && strings.Contains(key, fmt.Sprintf("segments/%020d-", 10)) {
			return fakebucket.ErrTimeout
		}
		return nil
	}
	for range 30 {
		r.fill(1)
		r.pass(10 * second)
		if r.log.Exported() > 10 || r.log.HotStart() > 10 {
			t.Fatalf("exported %d, the disk begins at %d", r.log.Exported(), r.log.HotStart())
		}
	}
	if r.log.HotStart() != 10 {
		t.Fatalf("the disk begins at %d", r.log.HotStart())
	}
	r.restart()
	r.readAll()
	if r.log.HotStart() != 10 {
		t.Fatalf("the disk begins at %d after a restart", r.log.HotStart())
	}
	down = false
	r.pass(600 * second)
	if r.log.Exported() < 28 || r.log.HotStart() < 24 {
		t.Fatalf("exported %d, the disk begins at %d", r.log.Exported(), r.log.HotStart())
	}
	r.readAll()
	r.wantTidy()
}

// TestRT3FailedUploadsCountForNothing: every upload fails. Retention by size keeps what it keeps without a cold
// tier.
func TestRT3FailedUploadsCountForNothing(t *testing.T) {
	cfg := smallConfig()
	cfg.RetentionBytes = 10 * cfg.SegmentBytes
	r := newRig(t, cfg)
	failed := 0
	r.sees.before = func(op fakebucket.Op, key string) error {
		if op != fakebucket.OpPut || !strings.HasSuffix(key, ".seg") {
			return nil
		}
		failed++
		return fakebucket.ErrTimeout
	}
	cfg.Cold = false
	plain := newRig(t, cfg)
	for range 100 {
		r.fill(1)
		plain.fill(1)
		r.pass(2 * second)
		plain.pass(2 * second)
		if r.log.Start() != plain.log.Start() {
			t.Fatalf("of %d records those from %d on are kept, without a cold tier those from %d on", r.acked, r.log.Start(), plain.log.Start())
		}
	}
	if plain.log.Start() < 60 {
		t.Fatalf("retention begins at %d", plain.log.Start())
	}
	if failed < 10 {
		t.Fatalf("%d uploads failed", failed)
	}
	r.readAll()
}

// TestRT4ObjectsAndFilesCountOnce: what is on disk and in the bucket, there even under several keys because its
// upload was done again, counts once: what is kept is what was asked for, to a segment.
func TestRT4ObjectsAndFilesCountOnce(t *testing.T) {
	cfg := smallConfig()
	cfg.RetentionBytes = 10 * cfg.SegmentBytes
	r := newRig(t, cfg)
	again := 0
	r.sees.before = func(op fakebucket.Op, key string) error {
		if op == fakebucket.OpPut && strings.HasSuffix(key, ".seg") {
			if again++; again%2 == 1 {
				r.bucket.FailNext(fakebucket.OpPut, fakebucket.O2Applied)
			}
		}
		return nil
	}
	for range 50 {
		r.fill(2)
		r.pass(10 * second)
		if r.log.Start() == 0 {
			continue
		}
		kept, _ := r.unexported()
		first := int64(0)
		r.sees.published(func(_ string, size int64, _ uint32) {
			if first == 0 {
				first = size
			}
			kept += size
		})
		if kept < cfg.RetentionBytes || kept-first >= cfg.RetentionBytes {
			t.Fatalf("%d bytes are kept from %d on, %d of them in the oldest object: want %d", kept, r.log.Start(), first, cfg.RetentionBytes)
		}
	}
	if r.log.Start() < 50 || again < 90 {
		t.Fatalf("start %d, %d uploads", r.log.Start(), again)
	}
	r.readAll()
	r.wantTidy()
}

// TestRT10RetentionDuringAnUpload: between two parts of an upload retention lets the segment go. The upload ends
// whole or not at all, and nothing of it is listed or left.
func TestRT10RetentionDuringAnUpload(t *testing.T) {
	for n := range 8 {
		part, evict := n/2, n%2 == 1 // from the disk alone, or for good
		o, p := partOptions()
		r := newRigWith(t, smallConfig(), o, p)
		left := part
		r.sees.after = func(op fakebucket.Op, _ string) {
			if op != fakebucket.OpBegin && op != fakebucket.OpPart {
				return
			}
			if left--; left != -1 {
				return
			}
			let := r.log.Trim
			if evict {
				let = r.log.Offload
			}
			if err := let(r.now, r.log.Committed()); err != nil {
				t.Fatal(err)
			}
			for range 20 { // all lanes but the one of the upload, which is under way
				for lane := range core.LaneCount {
					if e := r.log.Next(r.now, lane); lane != core.Uploads && e != nil {
						if lane == core.Catalogue {
							r.log.Complete(r.now, e, r.cold.Run(e))
						} else {
							r.log.Complete(r.now, e, r.files.Run(e))
						}
					}
				}
			}
			if r.log.HotStart() > r.log.Exported() {
				t.Fatalf("files below %d are gone, exported is %d", r.log.HotStart(), r.log.Exported())
			}
		}
		r.fill(6)
		r.pass(60 * second)
		if left >= 0 {
			t.Fatalf("part %d was never sent", part)
		}
		if r.log.HotStart() == 0 || evict != (r.log.Start() == 0) {
			t.Fatalf("part %d: start %d, the disk begins at %d", part, r.log.Start(), r.log.HotStart())
		}
		r.fill(6)
		r.pass(60 * second)
		r.readAll()
		r.wantTidy()
		r.restart()
		r.readAll()
	}
}
