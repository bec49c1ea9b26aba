package sim

import (
	"strconv"

	"varve/core/topics"
)

// topicMarkNames are the words of the marks of the machine of topics.
var topicMarkNames = [topics.MarkCount]string{
	topics.MarkReplaySnapshot: "replay-snapshot",
	topics.MarkReplayAgain:    "replay-again",
	topics.MarkUnlisted:       "unlisted",
	topics.MarkRefused:        "refused",
	topics.MarkSweepBegun:     "sweep-begun",
	topics.MarkSweepDead:      "sweep-dead",
	topics.MarkSweepGrowth:    "sweep-growth",
	topics.MarkOffline:        "offline",
	topics.MarkOpenedLater:    "opened-later",
	topics.MarkCreateFailed:   "create-failed",
	topics.MarkGrowFailed:     "grow-failed",
	topics.MarkEntryFailed:    "entry-failed",
	topics.MarkEntryUnknown:   "entry-unknown",
	topics.MarkReload:         "reload",
	topics.MarkReloadFailed:   "reload-failed",
	topics.MarkUnready:        "unready",
	topics.MarkAborted:        "aborted",
	topics.MarkWaited:         "waited",
	topics.MarkExistsLate:     "exists-late",
	topics.MarkRecreated:      "recreated",
	topics.MarkRemoveFailed:   "remove-failed",
	topics.MarkRemovedPartly:  "removed-partly",
	topics.MarkAnother:        "another",
	topics.MarkChanged:        "changed",
	topics.MarkReconfigured:   "reconfigured",
	topics.MarkSnapshot:       "snapshot",
	topics.MarkTrim:           "trim",
	topics.MarkProducersBlock: "producers-block",
	topics.MarkBudget:         "budget",
	topics.MarkClosedUnderWay: "closed-under-way",
}

func topicMarkName(m topics.Mark) string {
	if topicMarkNames[m] == "" {
		return "mark " + strconv.Itoa(int(m))
	}
	return topicMarkNames[m]
}
