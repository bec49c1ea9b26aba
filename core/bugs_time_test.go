package core_test

import (
	"math"
	"testing"

	"varve/core"
	"varve/core/segment"
)

const hour core.Time = 3600 * 1_000_000_000

// stamped appends one record with a timestamp of its own.
func (r *rig) stamped(i int, at core.Time) {
	r.t.Helper()
	b := batchOf(i)
	b.MaxTime = at
	if _, err := r.log.Append(r.now, &b); err != nil {
		r.t.Fatal(err)
	}
	r.pump()
}

// oneFileEach is a log of segments of one record each, with these timestamps.
func oneFileEach(t *testing.T, cfg core.Config, times []core.Time) *rig {
	t.Helper()
	r := newRig(t)
	r.open(cfg)
	for i, at := range times {
		r.stamped(i, at)
		if err := r.log.Roll(r.now); err != nil {
			t.Fatal(err)
		}
		r.pump()
	}
	return r
}

// oddTimes are what broken clocks and wrong units make of a record's time.
func oddTimes(now core.Time) []core.Time {
	return []core.Time{
		now, now + 10*365*24*hour, now / 1000, now / 1_000_000, now / 1_000_000_000, now, 0, -1, 1,
		math.MaxInt64, math.MinInt64, now * 2, now,
	}
}

// oddFiles is a log with a segment for each odd time, in the life that wrote it or in the next one.
func oddFiles(t *testing.T, cfg core.Config, reopen bool) (r *rig, times []core.Time) {
	t.Helper()
	times = oddTimes(newRig(t).now.Wall)
	r = oneFileEach(t, cfg, times)
	if reopen {
		r.kill()
		r.open(cfg)
	}
	return r, times
}

// TestTS1FutureTimesDoNotHoldRetention: one record stamped ten years ahead, or in a wrong unit, among
// ordinary ones. Retention goes by the time of the append: every segment goes in time.
func TestTS1FutureTimesDoNotHoldRetention(t *testing.T) {
	cfg := tableConfig()
	cfg.RetentionAge = hour
	for _, reopen := range []bool{false, true} {
		r, times := oddFiles(t, cfg, reopen)
		r.pass(hour + cfg.RetentionCheckInterval)
		r.pass(cfg.RetentionCheckInterval)
		if n := len(segments(r.files())); r.log.Start() != core.Offset(len(times)) || n > 0 {
			t.Errorf("reopened %v: start %d of %d, %d segments", reopen, r.log.Start(), len(times), n)
		}
	}
}

// TestTS3PastTimesDeleteNothing: times of 0, -1, seconds taken for nanoseconds and the ends of the range.
// Nothing younger than the limit by its append goes, and no age overflows.
func TestTS3PastTimesDeleteNothing(t *testing.T) {
	cfg := tableConfig()
	cfg.RetentionAge = hour
	for _, reopen := range []bool{false, true} {
		r, times := oddFiles(t, cfg, reopen)
		for range 20 {
			r.pass(hour / 21)
			if r.log.Start() != 0 {
				t.Fatalf("reopened %v: start %d before anything is an hour old", reopen, r.log.Start())
			}
		}
		r.wantRecords(0, len(times))
	}
	// The same with a wall clock at the ends of its range.
	for _, wall := range []core.Time{math.MinInt64, math.MinInt64 + 1, -hour, 0, math.MaxInt64 - 4*hour} {
		r := newRig(t)
		r.now.Wall = wall
		r.open(cfg)
		r.stamped(0, 0)
		_ = r.log.Roll(r.now)
		r.pump()
		r.pass(hour / 2)
		if r.log.Start() != 0 {
			t.Errorf("wall clock %d: start %d after half an hour", wall, r.log.Start())
		}
		r.pass(hour)
		if r.log.Start() != 1 {
			t.Errorf("wall clock %d: start %d after an hour and a half", wall, r.log.Start())
		}
	}
	r := newRig(t) // a clock that jumps over more than half of its range
	r.now.Wall = math.MinInt64 + 1
	r.open(cfg)
	r.stamped(0, 0)
	_ = r.log.Roll(r.now)
	r.pump()
	r.now.Wall = math.MaxInt64 - 2*hour
	r.stamped(1, 0)
	_ = r.log.Roll(r.now)
	r.pump()
	r.pass(hour / 2)
	if r.log.Start() != 1 {
		t.Errorf("start %d, want 1: only the first record is old", r.log.Start())
	}
}

// TestCK1ClockStepsBack: an hour back between appends, and on. Readers, commits and retention go by
// offsets: every record is served once, nothing young goes, and everything goes in the end.
func TestCK1ClockStepsBack(t *testing.T) {
	cfg := tableConfig()
	cfg.RetentionAge = hour
	r := newRig(t)
	r.open(cfg)
	for i := range 12 {
		r.stamped(i, r.now.Wall)
		if i%4 == 3 {
			_ = r.log.Roll(r.now)
			r.pump()
		}
		if i%3 == 1 {
			r.now.Wall -= hour
		}
		r.wantRecords(0, i+1)
	}
	r.wantMarks(core.MarkClockBack)
	r.pass(cfg.RetentionCheckInterval)
	if r.log.Start() != 0 {
		t.Fatalf("start %d: the clock went back, nothing is old", r.log.Start())
	}
	r.kill()
	r.open(cfg)
	r.wantRecords(0, 12)
	r.pass(6 * hour)
	if r.log.Start() != 12 {
		t.Fatalf("start %d: something is stranded", r.log.Start())
	}
}

// TestCK3MonotonicClockStepsBack: the clock that durations go by gives a nanosecond less than before, at
// each call. No assertion fails, and the log goes on.
func TestCK3MonotonicClockStepsBack(t *testing.T) {
	for _, mode := range allModes {
		cfg := tableConfig()
		cfg.Sync, cfg.SegmentAge, cfg.RetentionAge = mode, hour, hour
		r := newRig(t)
		r.now.Mono = 10 * hour
		r.open(cfg)
		for i := range 30 {
			r.now.Mono -= core.Time(1 + i%3*1_000_000_000)
			r.append(i)
			r.now.Mono--
			r.log.Tick(r.now)
			r.pump()
			if i%7 == 6 {
				_ = r.log.Roll(r.now)
			}
		}
		if _, ok := r.log.Deadline(); !ok {
			t.Errorf("%v: nothing is due any more", mode)
		}
		r.now.Mono += 2 * hour
		r.pass(hour)
		r.pass(hour)
		r.close()
		r.open(cfg)
		r.wantRecords(int(r.log.Start()), 30)
	}
}

// TestRT4BytesCountOnce: a file that serves two spans, because a repair declared what lies between them
// lost, and a rescue beside the file that it came from. Its bytes count once: what is kept is what a
// plain sum over the files says.
func TestRT4BytesCountOnce(t *testing.T) {
	cfg := tableConfig()
	cfg.SegmentBytes = 4096
	r := newRig(t)
	r.open(cfg)
	r.put(0, 40, 300)
	r.close()
	img := imageOf(r)
	name := segments(img)[1]
	img = img.flipped(name, img.batches(t, name)[2].pos+150)
	repair := cfg
	repair.Repair, repair.VerifyAllOnOpen = true, true
	r.restore(img)
	r.open(repair)
	r.put(40, 43, 300)
	r.kill() // the last one is rescued by the next open
	img = imageOf(r)
	total, _ := sizes(img)
	for _, keep := range []int64{1, 4096, 5000, 10_000, 17_000, total - 4096, total, total * 2} {
		r.restore(img)
		cfg.RetentionBytes = keep
		r.open(cfg)
		r.pass(cfg.RetentionCheckInterval)
		r.pass(cfg.RetentionCheckInterval)
		left, first := sizes(r.files())
		if r.log.Start() > 0 && left < keep || left-first >= keep && len(segments(r.files())) > 2 {
			t.Errorf("keep %d of %d: %d are left, the first file has %d, start %d", keep, total, left, first, r.log.Start())
		}
	}
}

// sizes returns the bytes of all segments together, and those of the first one.
func sizes(files []savedFile) (all, first int64) {
	lowest := ""
	for _, f := range files {
		if _, _, kind, ok := segment.ParseName(f.name); ok && kind == segment.NameSegment {
			all += int64(len(f.data))
			if lowest == "" || f.name < lowest {
				lowest, first = f.name, int64(len(f.data))
			}
		}
	}
	return all, first
}

// TestRT5RetentionTwice: two runs at the same instant; the second one deletes nothing.
func TestRT5RetentionTwice(t *testing.T) {
	for _, edit := range []func(*core.Config){
		func(c *core.Config) { c.RetentionBytes = 10_000 },
		func(c *core.Config) { c.RetentionAge = hour },
	} {
		r, cfg := ready(t, 0, func(c *core.Config) { c.SegmentBytes = 4096; edit(c) })
		for i := range 40 {
			r.put(i, i+1, 20)
			r.now.Wall += hour / 25
		}
		r.pass(cfg.RetentionCheckInterval)
		r.pump()
		start, files := r.log.Start(), len(segments(r.files()))
		if start == 0 {
			t.Fatal("retention did nothing")
		}
		for range 3 {
			wall := r.now.Wall
			r.now.Mono += cfg.RetentionCheckInterval
			r.log.Tick(r.now)
			r.pump()
			r.now.Wall = wall
			if r.log.Start() != start || len(segments(r.files())) != files {
				t.Fatalf("start %d became %d", start, r.log.Start())
			}
		}
		r.kill() // nor does one after a restart
		r.open(cfg)
		r.now.Mono += cfg.RetentionCheckInterval
		r.log.Tick(r.now)
		r.pump()
		if r.log.Start() != start {
			t.Fatalf("start %d became %d after a restart", start, r.log.Start())
		}
	}
}

// TestRetentionOfShortLives: no life is as long as the interval of the checks, as with a program that
// is run every minute and appends a little. What earlier lives left goes all the same, with a repair
// alone nothing does.
func TestRetentionOfShortLives(t *testing.T) {
	for name, edit := range map[string]func(*core.Config){
		"size": func(c *core.Config) { c.RetentionBytes = 10_000 },
		"age":  func(c *core.Config) { c.RetentionAge = hour },
	} {
		r, cfg := ready(t, 0, func(c *core.Config) { edit(c) })
		for i := range 40 {
			r.put(i, i+1, 2000)
			r.close()
			r.now.Mono += cfg.RetentionCheckInterval
			r.now.Wall += hour / 4
			if i == 20 {
				repair := cfg
				repair.Repair, repair.VerifyAllOnOpen = true, true
				before := len(segments(r.files()))
				r.open(repair)
				r.close()
				if got := len(segments(r.files())); got != before {
					t.Errorf("%s: a repair left %d of %d segments", name, got, before)
				}
			}
			r.open(cfg)
		}
		if n := len(segments(r.files())); n > 6 {
			t.Errorf("%s: %d segments are left of 40", name, n)
		}
		if start := int(r.log.Start()); start > 40-3 || start < 40-6 {
			t.Errorf("%s: start %d of 40, of which 10,000 bytes or an hour are kept", name, start)
		}
		r.wantRecords(int(r.log.Start()), 40)
	}
}

// TestRT6RetentionOfOneSegment: as many bytes are to be kept as a segment has. The log never goes away
// with a roll: the active segment stays, and never less is kept than was asked for.
func TestRT6RetentionOfOneSegment(t *testing.T) {
	for _, keep := range []int64{1, 2048, 4096, 8192} {
		r, cfg := ready(t, 0, func(c *core.Config) { c.SegmentBytes, c.RetentionBytes = 4096, keep })
		for i := range 60 {
			r.put(i, i+1, 300)
			r.pass(cfg.RetentionCheckInterval)
			if s := r.log.Stats(); r.log.Start() > 0 && s.SegmentBytes < keep {
				t.Fatalf("keep %d: only %d bytes are left after record %d", keep, s.SegmentBytes, i)
			}
			if r.log.Start() > core.Offset(i) {
				t.Fatalf("keep %d: the whole log is gone", keep)
			}
			r.wantRecords(int(r.log.Start()), i+1)
		}
		if r.log.Start() == 0 {
			t.Errorf("keep %d: nothing ever went", keep)
		}
	}
}
