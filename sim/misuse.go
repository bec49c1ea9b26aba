package sim

import (
	"errors"

	"varve/core"
	"varve/core/segment"
)

// tryBadConfig opens with a configuration that cannot work, which must be refused with no effect.
func (w *World) tryBadConfig(cfg core.Config) {
	switch w.rng.Below(17) {
	case 0:
		cfg.SegmentBytes = int64(cfg.SectorBytes)
	case 1:
		cfg.SectorBytes = 768
	case 2:
		cfg.RetentionBytes = 0
	case 3:
		cfg.PendingBytes = cfg.MaxBatchBytes - 1
	case 4:
		cfg.ProducersMax = 0
	case 5:
		cfg.RetentionAge = -2
	case 6:
		cfg.Sync = segment.NoSync + 1
	case 7:
		cfg.SyncInterval = 0
	case 8:
		cfg.IndexSpacingBytes = 0
	case 9:
		cfg.MaxBatchBytes = 0
	case 10:
		cfg.MinFreeBytes = -1
	case 11:
		cfg.Preallocate, cfg.PrepareBytes = true, 0
	case 12:
		cfg.IdleSave = -1
	case 13:
		cfg.SegmentAge = 0
	case 14:
		cfg.LocalRetentionBytes = -2
	case 15:
		cfg.LocalRetentionAge = 0
	case 16:
		cfg.RetentionCheckInterval = 0
	}
	if w.log.Reopen(cfg, w.clock.now()) == nil {
		w.fail("config", "a configuration that cannot work was accepted")
	}
	w.res.Marks.add(MarkBadConfig)
}

// misuseEvery is how many appends come to one call that no log can carry out.
const misuseEvery = 256

// misuse makes a call that cannot be carried out in any phase. It must be refused, for its own reason
// if the log takes requests at all, and change nothing.
func (w *World) misuse(how uint64) {
	if !w.process.up {
		return
	}
	before := stateOf(w.log)
	b := core.Batch{Payload: misusePayload[:], PayloadCRC: 1, Kind: segment.KindRecords, Records: 1, Producer: core.NoProducer}
	var err, want error
	switch how % 3 {
	case 0:
		b.Records, want = 0, core.ErrEmpty
		_, err = w.log.Append(w.clock.now(), &b)
	case 1:
		b.Kind, want = 9, core.ErrBadKind
		_, err = w.log.Append(w.clock.now(), &b)
	case 2:
		want = core.ErrOutOfRange
		err = w.log.Trim(w.clock.now(), w.log.Committed()+1)
	}
	switch {
	case err == nil, before.phase == core.Ready && !errors.Is(err, want):
		w.fail("K23", "a call that no log can carry out was not refused for that")
	case stateOf(w.log) != before:
		w.fail("K23", "a call that was refused changed the log")
	}
	w.res.Marks.add(MarkMisuse)
}

var misusePayload [8]byte
