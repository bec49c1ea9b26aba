package wire_test

import (
	"errors"
	"io"
	"testing"

	"varve/core"
	"varve/faultfs"
	"varve/tiers"
	"varve/tiers/cold"
	"varve/tiers/disk"
	"varve/tiers/valkey"
	"varve/tiers/warm"
)

var errCut = errors.New("wire: connection lost")

// Names of the log in the servers.
const (
	streamName = "log"
	prefix     = "log/"
)

// host is a machine with a disk, and the process on it that runs the log, or ran it and lives on.
type host struct {
	disk  *faultfs.Disk
	fs    *faultfs.FS
	files *disk.Store
	warm  *warm.Store
	cold  *cold.Store
	log   *core.Log
	lock  io.Closer

	bucket  tiers.Bucket
	options cold.Options

	up      bool
	opened  bool // this life's recovery has finished
	flights [core.LaneCount]flight
	ticked  core.Time // when its timer fired last
	written core.Offset
	waiting []waiting // appends without an outcome
	own     uint64    // cohorts from this one on hold what no client knows; 0: none
}

// waiting is an append that was accepted.
type waiting struct {
	cohort uint64
	id     int32 // model.OpID
}

// flight is an effect on its way. It is carried out when it is issued, or when it completes.
type flight struct {
	e        core.Effect
	at       core.Time
	executed bool
	short    bool // no replica confirmed it
	err      error
}

func newHost(t *testing.T, d valkey.Dialer) *host {
	t.Helper()
	h := &host{disk: faultfs.New(), log: new(core.Log)}
	h.fs = h.disk.FS(0)
	h.files = disk.NewStore(h.fs)
	var streams [2]*valkey.Store
	for i := range streams {
		var err error
		streams[i], err = valkey.New(streamName, d, valkey.Bounds{EntryBytes: 4 << 20, PageBytes: 16 << 10, Timeout: int64(timeout)})
		if err != nil {
			t.Fatal(err)
		}
	}
	h.warm = warm.NewStore(streams[0], streams[1], h.files)
	h.files.SetStreams(h.warm)
	h.cold = cold.NewStore(nil, prefix, h.files, cold.Options{})
	h.files.SetObjects(h.cold)
	return h
}

// reset gives the host an empty disk for a schedule.
func (h *host) reset(seed uint64, b tiers.Bucket, faults faultfs.FaultSet) {
	h.disk.Reset(faultfs.Params{Seed: seed})
	h.disk.SetFaults(faults)
	h.bucket = b
	h.options = cold.Options{PartBytes: tiers.PartBytesMin, ReadAheadBytes: 4096, ManifestBytes: 4096, Timeout: timeout}
	h.end()
}

// end ends the process. Its connections are lost, and the kernel has what it wrote.
func (h *host) end() {
	if h.lock != nil && !h.fs.Dead() {
		_ = h.lock.Close()
	}
	h.lock, h.up, h.opened, h.own = nil, false, false, 0
	h.flights = [core.LaneCount]flight{}
	h.waiting = h.waiting[:0]
	h.fs.Kill()
	h.files.Reset(h.fs)
	h.warm.Reset(h.files)
	h.cold.Reset(h.bucket, prefix, h.files, h.options)
}

// start begins a process, as the driver does: the directory is made if it is missing.
func (h *host) start(cfg core.Config, now core.Now) error {
	var err error
	if h.lock, err = h.fs.Lock("lock"); errors.Is(err, disk.ErrNotExist) {
		if err = h.fs.Mkdir(disk.DirLog); err == nil {
			h.lock, err = h.fs.Lock("lock")
		}
	}
	if err != nil {
		return err
	}
	h.up, h.ticked = true, 0
	return h.log.Reopen(cfg, now)
}

// execute carries out so many steps of an effect, all that it has if there are fewer.
func (h *host) execute(f *flight, steps int64) {
	step := h.files.Step
	switch lane := f.e.Lane(); {
	case lane == core.Warm:
		step = h.warm.Step
	case lane >= core.Uploads:
		step = h.cold.Step
	}
	for ; steps > 0 && !f.executed && !h.fs.Dead(); steps-- {
		var done bool
		done, f.err = step(f.e)
		f.executed = done || f.err != nil
	}
}

// whole is more steps than any effect has.
const whole = 1 << 30

// idle reports whether no effect is in flight.
func (h *host) idle() bool {
	for i := range h.flights {
		if h.flights[i].e != nil {
			return false
		}
	}
	return true
}

// due returns when something happens next on its own, and on which lane; LaneCount is the timer.
func (h *host) due() (at core.Time, lane core.Lane) {
	at, lane = never, core.LaneCount
	if !h.up {
		return at, lane
	}
	if d, ok := h.log.Deadline(); ok {
		at = max(d, h.ticked+microsecond) // what is due may have to wait for a lane
	}
	for i := range h.flights {
		if f := &h.flights[i]; f.e != nil && f.at <= at {
			at, lane = f.at, core.Lane(i)
		}
	}
	return at, lane
}

const (
	never       core.Time = 1 << 62
	microsecond core.Time = 1_000
	millisecond core.Time = 1_000_000
	second      core.Time = 1_000_000_000
)
