package sim

import (
	"errors"
	"strconv"

	"varve/core"
	"varve/faultfs"
	"varve/model"
)

// Tap takes a run as data while it happens, for a picture of it. A World whose Trace is one calls it
// beside each line of the timeline.
type Tap interface {
	// Begin is the start of a run on an empty disk. A schedule has more than one if the same calls
	// are compared under several configurations.
	Begin()
	// Moment is one line. Both arguments are the world's own and valid until the call returns.
	Moment(m *Moment, d *faultfs.Disk)
	// End is the end of a run, with what clients called and saw.
	End(h *model.Checker)
	// Fault is a fault that takes effect: before the moment that shows what came of it.
	Fault(f faultfs.Fault)
}

// Moment is one line of the timeline.
type Moment struct {
	At    int64 // virtual nanoseconds
	Until int64 // of Issued: when the step completes if nothing comes in between
	Life  int
	Track Track
	Kind  MomentKind
	Text  string
}

// Track is whom a moment is about: the world, the log, one of its lanes, a client, a reader.
type Track int16

// Tracks. Lanes, clients and readers are numbered from their first one on.
const (
	TrackWorld Track = iota
	trackLog
	trackLanes
	trackClients = trackLanes + Track(core.LaneCount)
	trackReaders = trackClients + clientsMax
	trackSingle  = trackReaders + clientsMax // a client's reader that does not follow
)

func trackLane(l core.Lane) Track { return trackLanes + Track(l) }

func trackReader(id int32) Track { return trackReaders + Track(id) }

func trackEvent(e *Event) Track {
	if e.Kind.IsOp() {
		return trackClients + Track(e.Client)
	}
	return TrackWorld
}

func (w *World) trackAppend(id model.OpID) Track { return trackClients + Track(w.appends[id].client) }

// String names a track.
func (t Track) String() string {
	switch {
	case t == TrackWorld:
		return "world"
	case t == trackLog:
		return "log"
	case t < trackClients:
		return [core.LaneCount]string{core.Tail: "Tail", core.Syncs: "Sync", core.Hot: "Hot", core.Uploads: "Uploads", core.Catalogue: "Catalogue", core.Warm: "Warm"}[t-trackLanes]
	case t < trackReaders:
		return "client " + strconv.Itoa(int(t-trackClients))
	case t < trackSingle:
		return "follower " + strconv.Itoa(int(t-trackReaders))
	}
	return "reader " + strconv.Itoa(int(t-trackSingle))
}

// MomentKind is what a moment is.
type MomentKind uint8

// Kinds of moments.
const (
	Note     MomentKind = iota // for the reader of the timeline
	Asked                      // an event of the schedule
	Issued                     // a step of an effect is on its way
	Stepped                    // it was carried out
	CutShort                   // the process died inside it
	Failed                     // it failed; or a call was refused, an open ended in an error
	Acked                      // an append succeeded
	Unknown                    // an append ended and nobody knows how
	Fetched                    // a reader has its bytes
	Phased                     // the log is in another phase
	Started                    // a process starts
	Died                       // and ends
	Lost                       // power loss
	Healed                     // all faults are over
	Violated                   // a property
)

// attachTap begins a run for the tap, if there is one.
func (w *World) attachTap() {
	w.tap, _ = w.Trace.(Tap)
	w.check.Record = w.tap != nil
	if w.tap == nil {
		w.disk.Watch(nil)
		return
	}
	w.disk.Watch(w.tap.Fault)
	w.tap.Begin()
}

func (w *World) endTap() {
	if w.tap != nil {
		w.tap.End(w.check)
	}
}

// issued shows a step that is on its way.
func (w *World) issued(lane core.Lane, took int64) {
	w.tap.Moment(&Moment{
		At: w.clock.mono, Until: w.clock.mono + took, Life: int(w.process.life), Track: trackLane(lane),
		Kind: Issued, Text: effectText(w.flights[lane].effect),
	}, w.disk)
}

func outcomeKind(err error) MomentKind {
	switch {
	case err == nil:
		return Acked
	case errors.Is(err, core.ErrUnknown):
		return Unknown
	}
	return Failed
}
