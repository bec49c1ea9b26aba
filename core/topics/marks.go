package topics

// Mark is a rare branch that a simulator run must reach.
type Mark uint8

// Marks, by where they lie.
const (
	MarkReplaySnapshot Mark = iota // a catalogue begins with a snapshot
	MarkReplayAgain                // a snapshot stands behind entries that it repeats
	MarkUnlisted                   // a directory lies where no incarnation is: it is left alone
	MarkRefused                    // directories that the catalogue cannot know: refused
	MarkSweepBegun                 // an open removes what a creation left that did not end
	MarkSweepDead                  // an open goes on with a removal
	MarkSweepGrowth                // an open removes what a growth left that did not end
	MarkOffline                    // a partition could not be opened
	MarkOpenedLater                // and could be later
	MarkCreateFailed               // a partition could not be made: the creation is undone
	MarkGrowFailed                 // the same of a growth
	MarkEntryFailed                // an entry is definitely not in the catalogue
	MarkEntryUnknown               // nobody knows whether an entry is there
	MarkReload                     // the catalogue is opened again
	MarkReloadFailed               // and cannot be
	MarkUnready                    // the log of the catalogue can be read and may show less than it holds
	MarkAborted                    // a request under way ends, because the catalogue is opened again
	MarkWaited                     // a request waited for another one of its topic
	MarkExistsLate                 // and then found the name taken
	MarkRecreated                  // a topic is created while an incarnation before it is still removed
	MarkRemoveFailed               // a removal failed; it is tried again
	MarkRemovedPartly              // a growth was being undone when its topic was deleted
	MarkAnother                    // the name of the incarnation that a request means is another one's by now
	MarkChanged                    // a configuration was changed since a request for another one was made of it
	MarkReconfigured               // logs are opened again with another configuration
	MarkSnapshot                   // a snapshot is in the catalogue
	MarkTrim                       // and what was before it is gone
	MarkProducersBlock             // a block of producer ids is reserved
	MarkBudget                     // a request was more than the node may have
	MarkClosedUnderWay             // Close ended requests that were under way
	MarkCount
)

// MarkSet is a set of marks.
type MarkSet uint64

// Has reports whether a mark is in the set.
func (s MarkSet) Has(m Mark) bool { return s&(1<<m) != 0 }

// Marks returns the marks reached since the machine began.
func (m *Machine) Marks() MarkSet { return m.marks }

func (m *Machine) mark(x Mark) { m.marks |= 1 << x }

// check asserts an invariant of our own code; it never judges input.
func check(ok bool, what string) {
	if !ok {
		panic("topics: invariant violated: " + what)
	}
}
