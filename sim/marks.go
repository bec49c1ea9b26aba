package sim

import (
	"math/bits"

	"varve/core"
	"varve/core/topics"
	"varve/faultfs"
	"varve/sim/fakebucket"
	"varve/sim/fakevalkey"
)

// Mark is something that the simulator itself reached.
type Mark uint8

// Marks of the simulator.
const (
	MarkKill Mark = iota
	MarkPower
	MarkPressure
	MarkRecoveryCrash      // D20
	MarkRecoveryCrashTwice // D20, in the recovery after that
	MarkSaveCrash          // D19, in a save of the superblock
	MarkSlow               // D16
	MarkHang               // D16: seconds
	MarkSecond             // D21
	MarkClock              // C1; C2, C3, C4 follow
	markClockBack
	markClockFreeze
	markClockSkew
	MarkConfig    // X1
	MarkPause     // X2
	MarkStale     // X3
	MarkBadConfig // a configuration was refused
	MarkMisuse    // a call that no log can carry out was refused
	MarkOpenFailed
	MarkOpenRefused
	MarkPoisoned
	MarkClosed
	MarkRetry
	MarkTrimmed
	MarkDiverged
	MarkReadError
	MarkReadCorrupt
	MarkRot
	MarkSecondPlan // K10 was judged
	MarkRetained   // K14 was judged both ways
	MarkSame       // K17 was judged over several configurations
	MarkDiskLost   // the disk was lost
	MarkOutage     // the bucket did not answer for a while
	MarkMoved      // another host opened the log
	MarkSpoiled    // the bucket damaged an object
	MarkRival      // the process of the host before lived on
	MarkRivalAcked // and acked appends after another had opened the log
	MarkClaimRace  // and gave way, because both had opened it
	MarkServer     // something happened to the Valkey server
	MarkAnother    // another log wrote under the name of this one
	MarkHidden     // an open knew of records that are committed only once the warm tier has them

	MarkReplyLost         // a connection to a node lost an answer
	MarkReplyLate         // or brought it late
	MarkTopicUnknown      // nobody knows whether a request about a topic took effect
	MarkProducerAgain     // a producer began anew under its next epoch
	MarkStoodAt           // a client went on where it had got to
	MarkStoodBefore       // in a partition whose leader's epoch is another one since
	MarkEpochEnd          // it asked where an epoch ends that is not the leader's
	MarkRecordsDeleted    // records were given up
	MarkProducerAhead     // a producer sent the batch behind one that nobody knows of
	MarkProducerRefused   // and was told that one is missing
	MarkDuplicateAnswered // a batch that was sent again got its offset
	MarkEndLost           // a partition begins without what its policy allowed to be lost
	MarkLetGo             // retention let go of records of a partition
	markCount
)

var markNames = [markCount]string{
	"kill", "power", "pressure", "crash-in-recovery", "crash-in-recovery-twice", "crash-in-save", "slow", "hang",
	"second-process", "clock-forward", "clock-back", "clock-freeze", "clock-skew", "config-changed",
	"pause", "stale-completion", "bad-config", "misuse", "open-failed", "open-refused", "poisoned", "closed",
	"retry", "trimmed", "diverged", "read-error", "read-corrupt", "rot", "second-plan", "retained", "same-calls", "disk-lost", "outage", "moved", "spoiled",
	"rival", "rival-acked", "claim-race", "server", "another-log", "hidden",
	"reply-lost", "reply-late", "topic-unknown", "producer-again",
	"stood-at", "stood-before", "epoch-end", "records-deleted", "producer-ahead", "producer-refused", "duplicate-answered", "end-lost", "let-go",
}

// Marks is what a run, or many, reached: of the disk, the core and the simulator.
type Marks struct {
	Disk   faultfs.FaultSet
	Bucket fakebucket.FaultSet
	Server fakevalkey.FaultSet
	Core   core.MarkSet
	Topics topics.MarkSet
	Sim    uint64
	Tiers  Tiers // that the log had
}

func (m *Marks) add(x Mark) { m.Sim |= 1 << x }

// Join adds what others reached.
func (m *Marks) Join(o *Marks) {
	m.Disk |= o.Disk
	m.Bucket |= o.Bucket
	m.Server |= o.Server
	for i := range m.Core {
		m.Core[i] |= o.Core[i]
	}
	m.Topics |= o.Topics
	m.Sim |= o.Sim
	for t := range m.Tiers {
		m.Tiers[t] = m.Tiers[t] || o.Tiers[t]
	}
}

func (w *World) collectMarks() {
	w.res.Marks.Disk |= w.disk.Marks()
	if w.h.On(SwMove) {
		w.res.Marks.Disk |= w.other.Marks()
	}
	if w.h.Cold() {
		w.res.Marks.Bucket |= w.cold.bucket.Marks()
	}
	if w.h.Warm() {
		w.res.Marks.Server |= w.warm.server.Marks()
	}
	for t, has := range [...]bool{core.TierHot: true, core.TierCold: w.h.Cold(), core.TierWarm: w.h.Warm(), ofNode: w.h.Node} {
		w.res.Marks.Tiers[t] = w.res.Marks.Tiers[t] || has
	}
	if !w.h.Node {
		w.joinCore()
	}
}

func (w *World) joinCore() { w.res.Marks.joinCore(w.log) }

func (m *Marks) joinCore(l *core.Log) {
	set := l.Marks()
	for i := range set {
		m.Core[i] |= set[i]
	}
}

// Tiers says which tiers there were, and last whether there was a node.
type Tiers [core.TierCount + 1]bool

// ofNode stands for a node, where marks are listed by tier.
const ofNode = core.TierCount

// markEntry names one mark of the registry.
type markEntry struct {
	name  string
	tier  core.Tier // only a log with that tier reaches it
	kind  markKind
	index int
}

type markKind uint8

const (
	markOfDisk markKind = iota
	markOfCore
	markOfBucket
	markOfServer
	markOfSim
	markOfTopics
)

// due reports whether runs have to reach a mark, by the tiers that their logs had.
func (e *markEntry) due(had Tiers) bool {
	switch {
	case !had[e.tier] && e.tier != core.TierHot:
		return false
	case had[ofNode]: // what a log does by itself is due elsewhere
		return e.tier == ofNode || e.kind == markOfDisk || e.kind == markOfSim && nodeMarks[e.name]
	case had[core.TierWarm] && e.name == "core heal-failed": // hardly ever
		return false
	case had[core.TierCold] || had[core.TierWarm]:
		return !diskOnly[e.name]
	}
	return true
}

// nodeMarks are those of a log's world that a node has, too.
var nodeMarks = map[string]bool{
	"sim kill": true, "sim power": true, "sim pressure": true, "sim crash-in-recovery": true, "sim crash-in-recovery-twice": true,
	"sim slow": true, "sim hang": true, "sim second-process": true, "sim clock-forward": true, "sim clock-back": true,
	"sim clock-freeze": true, "sim clock-skew": true, "sim config-changed": true, "sim pause": true, "sim open-failed": true,
	"sim open-refused": true, "sim poisoned": true, "sim closed": true, "sim retry": true, "sim read-error": true,
	"sim read-corrupt": true, "sim rot": true,
}

// diskOnly are the marks of what schedules with other tiers leave out: hundreds of lives, a superblock
// that went back.
var diskOnly = map[string]bool{
	"core super-grown": true, "core epoch-ahead": true, // never
	"core replan": true, "core refused-checksum": true, // hardly ever
}

func (e *markEntry) has(m *Marks) bool {
	switch e.kind {
	case markOfDisk:
		return m.Disk.Has(faultfs.Fault(e.index))
	case markOfCore:
		return m.Core.Has(core.Mark(e.index))
	case markOfBucket:
		return m.Bucket.Has(fakebucket.Fault(e.index))
	case markOfServer:
		return m.Server.Has(fakevalkey.Fault(e.index))
	case markOfTopics:
		return m.Topics.Has(topics.Mark(e.index))
	}
	return m.Sim>>e.index&1 != 0
}

// registry lists every mark that a run has to reach: those of a tier only if the runs have one.
func registry() []markEntry {
	var all []markEntry
	for f := faultfs.Fault(1); f < faultfs.FaultCount; f++ {
		all = append(all, markEntry{"disk " + f.String(), core.TierHot, markOfDisk, int(f)})
	}
	for c := core.Mark(0); c < core.MarkCount; c++ {
		tier := core.TierHot
		switch {
		case c >= core.MarkWarmDoubt:
			tier = core.TierWarm
		case c >= core.MarkColdMissing:
			tier = core.TierCold
		}
		all = append(all, markEntry{"core " + coreMarkName(c), tier, markOfCore, int(c)})
	}
	for f := fakebucket.NoFault + 1; f < fakebucket.FaultCount; f++ {
		if bucketFaults.Has(f) || f == fakebucket.O10Away || f == fakebucket.O11ReadOnly { // which last, as outages
			all = append(all, markEntry{"bucket " + f.String(), core.TierCold, markOfBucket, int(f)})
		}
	}
	for f := fakevalkey.NoFault + 1; f < fakevalkey.FaultCount; f++ {
		if serverFaults.Has(f) {
			all = append(all, markEntry{"server " + f.String(), core.TierWarm, markOfServer, int(f)})
		}
	}
	for s := Mark(0); s < markCount; s++ {
		tier := core.TierHot
		switch {
		case s >= MarkReplyLost:
			tier = ofNode
		case s >= MarkServer:
			tier = core.TierWarm
		case s >= MarkDiskLost:
			tier = core.TierCold
		}
		all = append(all, markEntry{"sim " + markNames[s], tier, markOfSim, int(s)})
	}
	for x := topics.Mark(0); x < topics.MarkCount; x++ {
		all = append(all, markEntry{"topics " + topicMarkName(x), ofNode, markOfTopics, int(x)})
	}
	return all
}

// Names returns the marks that were reached, and those that were not and that a run must reach.
func (m *Marks) Names() (reached, missing []string) {
	for _, e := range registry() {
		if e.has(m) {
			reached = append(reached, e.name)
		} else if Unreachable[e.name] == "" && e.due(m.Tiers) {
			missing = append(missing, e.name)
		}
	}
	return reached, missing
}

// Count returns how many marks were reached.
func (m *Marks) Count() int {
	n := bits.OnesCount64(uint64(m.Disk)) + bits.OnesCount64(uint64(m.Server)) + bits.OnesCount64(m.Sim) + bits.OnesCount64(uint64(m.Topics))
	for _, w := range m.Core {
		n += bits.OnesCount64(w)
	}
	return n
}

// Unreachable lists the marks that the simulator cannot reach, each with the reason and what covers
// it instead.
var Unreachable = map[string]string{
	"core super-newer":    "the simulator writes one format version; core tests read a newer one",
	"core foreign":        "no file of another log gets into the directory; core tests put one there",
	"core roll-producers": "4,096 producers in one segment; TestRollsWhenTheFooterIsFull",
	"core repair-lost":    "varve log repair, a command of the operator; core and command tests",
	"core repair-suffix":  "varve log repair; core and command tests",
	"core rebuilt":        "varve log repair; core and command tests",

	"core cold-missing":     "a log with a cold tier is never opened without it; core tests do that",
	"core cold-absent":      "the simulated operator always allows a new log; core tests do not",
	"core manifest-newer":   "the simulator writes one version of the manifest; core tests read a newer one",
	"core manifest-damaged": "no fault damages the manifest for good; core tests do that",
	"core tier-gap":         "no fault takes an object away; core tests do that",
	"core accept-loss":      "what an operator says; core tests",
	"core export-lost":      "varve log repair, a command of the operator; core tests",

	"topics unlisted": "only where a disk lies, and hardly ever; TestDirectoriesThatNobodyHas",
	"topics refused":  "no catalogue is ever replaced; TestDirectoriesOfAnotherCatalogue",

	"core warm-odd": "no fault damages an entry that a Valkey server keeps; TestEntriesThatDoNotCount",
}
