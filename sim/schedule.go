package sim

import (
	"varve/core"
	"varve/faultfs"
	"varve/sim/fakebucket"
	"varve/sim/fakevalkey"
)

// Kind is what an event of a schedule does. Kinds up to lastOp are operations: calls of a client.
// The others are what the world does to the log.
type Kind uint8

// Event kinds. The comment names the arguments A, B, C, D.
const (
	Append   Kind = iota // bytes of payload, records, content (see Content), producer + 1 (0: none)
	Retry                // producer: sends its newest unresolved or acked batch again
	Read                 // where (permille of [start, committed]), bytes a fetch, most batches
	Poll                 // bytes a fetch, most batches: the client's follower goes on
	Query                // asks for the committed end
	Trim                 // where (permille)
	RollNow              // -
	FindTime             // where (permille of the times)
	Restart              // configuration (0, 1), delay, lives: close, then open again; so many brief lives follow

	Crash     // how (see Death), calls that in-flight effects still get, delay before the reopen, Recovery
	Doom      // calls: the process dies when it has made so many more file-system calls; how; or that many deaths in saves
	Arm       // faultfs.Fault, faultfs.Op, calls to let pass
	Hurt      // -: random faults on
	Heal      // -: random faults off
	Clock     // how (see ClockJump), nanoseconds
	Pause     // nanoseconds: nothing of the process runs; completions and timers are late
	WriteBack // -: the kernel writes some dirty sectors back
	Rot       // where (permille of the files), bits
	Second    // another process tries to open the directory
	Slow      // lane, nanoseconds: the next step of that lane takes that long
	Idle      // -: nothing; keeps virtual time going
	Offload   // where (permille): what lies below leaves the local disk
	Lose      // delay before the reopen: the process dies and the disk is lost
	Move      // delay before the open, pause: another host opens the log, with a disk of its own; the process before dies, or goes on after the pause if that is not 0
	Spoil     // where (permille of the objects that the manifest lists), how (see SpoilKind): the bucket damages one
	Outage    // how (see OutageKind), calls that are answered before it: every call of the bucket fails
	Server    // how (see ServerKind), which replica: something happens to the Valkey server

	TopicCreate    // name, partitions. From here on: calls of the clients of a node
	TopicDelete    // name
	TopicGrow      // name, partitions that it shall have
	TopicConfigure // name, which configuration
	Produce        // name, partition, bytes of a value and records-1 above 16 bits, producer + 1 (0: none)
	Fetch          // name, partition, where (permille of [start, end]; above: where clients got to), bytes
	Metadata       // name: what it stands for
	ListEnds       // name, partition: where it ends
	EpochEnds      // name, partition, leader's epoch + 1 (0: of the last record that clients have seen): where it ends
	DeleteRecords  // name, partition, where (permille of [start, end]; above: all)
	kindCount

	producerInit = kindCount // what a Produce may do first: a producer id is reserved
)

const lastOp = Restart

// IsOp reports whether an event is a call of a client.
func (k Kind) IsOp() bool { return k <= lastOp || k == Offload || k >= TopicCreate }

// SpoilKind is what a bucket does to an object.
type SpoilKind = int64

// Kinds of damage in a bucket.
const (
	SpoilRot     SpoilKind = iota // O9: a bit is flipped
	SpoilExpired                  // O10: it is deleted
	spoilCount
)

// ServerKind is what happens to a Valkey server.
type ServerKind = int64

// What happens to it.
const (
	ServerFailover   ServerKind = iota // W4
	ServerRestart                      // W5
	ServerFreeze                       // W2: a replica stands still
	ServerThaw                         // and goes on
	ServerDisconnect                   // W1
	ServerAnother                      // another log writes under the name of this one
	serverCount
)

// OutageKind is how a bucket does not answer.
type OutageKind = int64

// Outages.
const (
	OutageOver OutageKind = iota
	OutageTimeout
	OutageThrottled
	OutageDenied
	OutageReadOnly // it may be read, and not written to
	OutageLost     // a timeout, from the next swap of a manifest on that is refused
	OutageManifest // the manifest is not there
	outageCount
)

var outages = [outageCount]fakebucket.Fault{
	OutageTimeout: fakebucket.O1Before, OutageThrottled: fakebucket.O4Throttled, OutageDenied: fakebucket.O11Denied, OutageReadOnly: fakebucket.O11ReadOnly,
}

// Death is how a process ends.
type Death = int64

// Deaths.
const (
	DeathKill              Death = iota // kill -9: the kernel's view survives
	DeathPower                          // power loss
	DeathKillPower                      // kill, then a power loss before the reopen
	DeathKillPressure                   // kill, then the kernel drops clean pages
	DeathKillPressurePower              // kill, dropped pages, power loss
	DeathPowerPower                     // power loss, then another while nothing ran but the open
	deathCount
)

// ClockJump is what happens to the wall clock.
type ClockJump = int64

// Clock jumps.
const (
	ClockForward ClockJump = iota // C1
	ClockBack                     // C2
	ClockFreeze                   // C3: stands still until the next jump
	ClockSkew                     // C4: runs at half or at double speed until the next jump
	clockJumps
)

// Content is what a payload holds after its id.
type Content = int64

// Contents. Zeros matter: recovery reads an all-zero sector as a sign of a torn write.
const (
	ContentPattern Content = iota
	ContentZeros
	ContentMixed // a pattern with zero sectors in it
	contentCount
)

// Recovery packs what happens to the lives after a crash: byte 0 configuration of the reopen, byte
// 1 and 2 file-system calls after which the first and the second recovery die (0: they do not).
type Recovery = int64

// Event is one line of a schedule.
type Event struct {
	Kind       Kind
	Client     uint8
	At         int64 // virtual nanoseconds
	A, B, C, D int64
	Sub        uint64 // seed of every draw until the next event
}

// Switch is a feature, or a fault that the simulator makes itself, which a seed turns on or off. The
// faults of the disk have switches of their own: Header.Faults.
type Switch uint8

// Switches.
const (
	SwSlow     Switch = iota // D16: a step that takes long
	SwHang                   // D16: a step that takes seconds
	SwPressure               // D18: after a kill, with or without a power loss
	SwPower                  // power losses; else only kills
	SwBack                   // D10
	SwSecond                 // D21
	SwForward                // C1
	SwBackward               // C2
	SwFreeze                 // C3
	SwSkew                   // C4
	SwConfig                 // X1
	SwPause                  // X2
	SwProducers
	SwTrim
	SwRoll
	SwBig
	SwZeros
	SwIdle // long quiet spells
	SwOffload
	SwLose    // the disk is lost
	SwOutage  // of the bucket
	SwMove    // to another host and back
	SwSpoil   // the bucket damages objects
	SwServer  // the Valkey server fails over, restarts, loses touch with replicas
	SwReplies // connections lose answers, or bring them late

	SwDeleteRecords // clients of a node give records up

	SwAnother // another log has the same name in the Valkey server
	switchCount
)

// damage holds the faults under which committed data may be damaged, so that recovery may refuse.
var damage = faultfs.Set(faultfs.D1Garbage, faultfs.D6Stale, faultfs.D7Rot, faultfs.D8Misdirect,
	faultfs.D9Lie, faultfs.D14ReadBad)

// Header is what holds for a whole schedule.
type Header struct {
	Seed     uint64
	Profile  Profile
	Clients  int64
	Switches uint64
	Faults   faultfs.FaultSet
	Rates    faultfs.Rates // chance in 65536 that a call of a class meets one, while faults are on
	Write    int64         // typical latency of a write, ns
	Sync     int64         // typical latency of a sync, ns
	Bucket   fakebucket.FaultSet
	Refusals fakebucket.Rates // as Rates, for calls of the bucket
	Server   fakevalkey.FaultSet
	Strikes  fakevalkey.Rates // chance in 65536 that a call of the server meets one
	Replicas int64            // of the server
	Persist  int64            // what a restart of it leaves; see fakevalkey.Persist
	Capacity int64            // bytes of the disk; 0: plenty
	Node     bool             // many logs, a catalogue and clients, in the place of one log
	Config   [2]core.Config   // of the first life; of lives after a Restart or Crash that says so
}

// On reports whether a switch is on.
func (h *Header) On(s Switch) bool { return h.Switches>>s&1 != 0 }

// Damaging reports whether the schedule can damage data that a log may rely on.
func (h *Header) Damaging() bool { return h.Faults&damage != 0 }

// Cold reports whether the log has a cold tier.
func (h *Header) Cold() bool { return h.Config[0].Cold }

// Warm reports whether the log has a warm tier.
func (h *Header) Warm() bool { return h.Config[0].Warm }

// other reports whether the log has a tier beside the disk.
func (h *Header) other() bool { return h.Cold() || h.Warm() }

func (h *Header) has(t core.Tier) bool {
	switch t {
	case core.TierCold:
		return h.Cold()
	case core.TierWarm:
		return h.Warm()
	case anyOther:
		return h.other()
	}
	return true
}

// Schedule is one seed, expanded: what happens, explicitly.
type Schedule struct {
	Header Header
	Events []Event
}

// Ops counts the operations of a schedule, and the appends among them.
func (s *Schedule) Ops() (ops, appends int) {
	for i := range s.Events {
		if k := s.Events[i].Kind; k.IsOp() {
			ops++
			if k == Append || k == Retry || k == Produce {
				appends++
			}
		}
	}
	return ops, appends
}
