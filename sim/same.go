package sim

import (
	"fmt"

	"varve/core"
	"varve/core/segment"
)

// K17, second half: the same calls give clients the same history under any configuration, as far as
// a configuration may not matter. The calls of a seed, and its deaths as plain kills, are run with
// no fault and with time to come to rest between them, so that no answer depends on how long
// something took; limits on what is accepted or kept are the same for all.

// sameEvery is how many seeds one is compared of. Its three runs cost a hundredth of the others'.
const sameEvery = 256

// sameConfigs is how many configurations are compared.
const sameConfigs = 3

// same compares the client histories of a schedule's calls under several configurations.
func (w *World) same(s *Schedule) {
	res, hashes := w.res, w.hashes
	w.hashes = w.spare
	w.calm(s)
	var first uint64
	for n := range sameConfigs {
		w.calmConfig(s, n)
		w.reset(&w.calls)
		if w.Trace != nil {
			w.say(TrackWorld, Note, "THE SAME CALLS, configuration %d of %d: %s", n+1, sameConfigs, configText(&w.calls.Header.Config[0]))
		}
		w.run()
		history := w.check.ClientHash()
		if n == 0 {
			first = history
		}
		if w.res.Violation == "" && history != first {
			w.fail("K17", fmt.Sprintf("the same calls gave clients another history in configuration %d: %016x, %016x in the first",
				n+1, history, first))
		}
		if w.res.Violation != "" {
			res.Check, res.Violation = w.res.Check, w.res.Violation+" (the same calls without faults)"
			break
		}
		res.Hash = res.Hash*golden ^ w.res.Hash
	}
	res.Marks.add(MarkSame)
	w.spare = w.hashes
	w.res, w.hashes = res, hashes
	w.s, w.h = s, &s.Header
}

// calm makes the schedule of calls: appends may follow each other at once, anything else finds the
// log at rest.
func (w *World) calm(s *Schedule) {
	c := &w.calls
	c.Header = Header{
		Seed: s.Header.Seed, Profile: Calm, Clients: s.Header.Clients, Write: s.Header.Write, Sync: s.Header.Sync,
		Replicas: s.Header.Replicas,
		Switches: s.Header.Switches & (1<<SwProducers | 1<<SwTrim | 1<<SwRoll | 1<<SwBig | 1<<SwZeros),
	}
	c.Events = c.Events[:0]
	at, burst := int64(second), 0
	for i := range s.Events {
		e := s.Events[i]
		rest := int64(200 * millisecond)
		switch e.Kind {
		case Append:
			if c.Header.On(SwTrim) {
				e.D = 0 // what is known of producers goes with the segments, which end elsewhere
			}
			if burst++; e.Sub&3 != 0 && burst < 8 {
				rest = 0
			}
		case Retry, Trim:
			if c.Header.On(SwTrim) == (e.Kind == Retry) {
				continue
			}
		case Read, Poll, Query, RollNow, FindTime:
		case Restart:
			e.A, e.C, rest = 0, 0, 10*second
		case Crash:
			e.A, e.B, e.D, rest = DeathKill, 0, 0, 10*second
		default:
			continue
		}
		if n := len(c.Events); n > 0 && e.Kind != Append && at == c.Events[n-1].At {
			at += 200 * millisecond
		}
		if rest > 0 {
			burst = 0
		}
		e.At = at
		at += rest
		c.Events = append(c.Events, e)
	}
}

// calmConfig sets the n-th configuration: what may not matter differs in each.
func (w *World) calmConfig(s *Schedule, n int) {
	c := &w.calls.Header.Config[0]
	*c = s.Header.Config[0]
	c.PendingBytes, c.MinFreeBytes = max(c.PendingBytes, 1<<20), 0
	c.RetentionBytes, c.RetentionAge = core.Unlimited, core.Unlimited
	c.LocalRetentionBytes, c.LocalRetentionAge = core.Unlimited, core.Unlimited
	c.ProducersMax = producersMax
	c.RepairChecksumTail, c.AllowDamaged = false, false
	c.WarmWait = second
	c.RetentionCheckInterval = second // there is nothing to let go, and a look at an idle server is no answer
	if n > 0 {
		c.WarmReplicas, c.WarmAckOnTimeout = min(n, int(s.Header.Replicas)), n == 2
		c.WarmEntryBytes, c.WarmHoldBytes = 1<<(4*n), 1<<(4*n)
		c.Sync = (c.Sync + segment.SyncMode(n)) % 3
		c.SectorBytes = 512 << (n * 3 / 2)
		c.SegmentBytes = max(c.SegmentBytes*3/2%8192, 2*int64(c.SectorBytes))
		c.IndexSpacingBytes = 1 << (4 * n)
		c.Preallocate = !c.Preallocate
		c.PrepareBytes = int64(c.SectorBytes) << n
		c.IdleSave = int64(n) * millisecond
		c.VerifyAllOnOpen = n == 2
		c.SegmentAge = [...]core.Time{0, core.Unlimited, 50 * millisecond}[n]
	}
	w.calls.Header.Config[1] = *c
}

func configText(c *core.Config) string {
	text := ""
	for i := range configKeys {
		text += fmt.Sprintf(" %s=%d", configKeys[i].name, configKeys[i].at(c))
	}
	return text[1:]
}
