package sim

import (
	"strconv"

	"varve/core"
)

// coreMarkNames are the words of the core's marks.
var coreMarkNames = [core.MarkCount]string{
	core.MarkNewLog:            "new-log",
	core.MarkSuperOneSlot:      "super-one-slot",
	core.MarkSuperRefused:      "super-refused",
	core.MarkSuperNewer:        "super-newer",
	core.MarkCleanOpen:         "clean-open",
	core.MarkIncompleteOpen:    "incomplete-open",
	core.MarkTornTail:          "torn-tail",
	core.MarkTornChecksum:      "torn-checksum",
	core.MarkRefusedChecksum:   "refused-checksum",
	core.MarkEvidenceBehind:    "evidence-behind",
	core.MarkCorrupt:           "corrupt",
	core.MarkAllowDamaged:      "allow-damaged",
	core.MarkRepairLost:        "repair-lost",
	core.MarkRepairSuffix:      "repair-suffix",
	core.MarkRebuilt:           "rebuilt",
	core.MarkLostSuffix:        "lost-suffix",
	core.MarkVoidFile:          "void-file",
	core.MarkSuperseded:        "superseded",
	core.MarkLeftover:          "leftover",
	core.MarkUnfinished:        "unfinished",
	core.MarkTmp:               "tmp",
	core.MarkQuarantine:        "quarantine",
	core.MarkHeaderByName:      "header-by-name",
	core.MarkForeign:           "foreign",
	core.MarkEpochAhead:        "epoch-ahead",
	core.MarkFooterDerived:     "footer-derived",
	core.MarkSidecarUsed:       "sidecar-used",
	core.MarkRescue:            "rescue",
	core.MarkRescueReplacement: "rescue-replacement",
	core.MarkReplan:            "replan",
	core.MarkOpenIOError:       "open-io-error",
	core.MarkOpenNoSpace:       "open-no-space",
	core.MarkRollSize:          "roll-size",
	core.MarkRollAge:           "roll-age",
	core.MarkRollProducers:     "roll-producers",
	core.MarkRollExplicit:      "roll-explicit",
	core.MarkOwnSegment:        "own-segment",
	core.MarkRollback:          "rollback",
	core.MarkRollbackFailed:    "rollback-failed",
	core.MarkCreateFailed:      "create-failed",
	core.MarkSealFailed:        "seal-failed",
	core.MarkNoSpace:           "no-space",
	core.MarkLowSpace:          "low-space",
	core.MarkSpaceBack:         "space-back",
	core.MarkPoisonSync:        "poison-sync",
	core.MarkPoisonDir:         "poison-dir",
	core.MarkSyncOverlap:       "sync-overlap",
	core.MarkSyncPartial:       "sync-partial",
	core.MarkAckPaused:         "ack-paused",
	core.MarkIdleSave:          "idle-save",
	core.MarkSuperRetry:        "super-retry",
	core.MarkSuperGrown:        "super-grown",
	core.MarkPrepared:          "prepared",
	core.MarkPrepareWait:       "prepare-wait",
	core.MarkPrepareFailed:     "prepare-failed",
	core.MarkRetentionSize:     "retention-size",
	core.MarkRetentionAge:      "retention-age",
	core.MarkTrim:              "trim",
	core.MarkTrimSync:          "trim-sync",
	core.MarkTrimInside:        "trim-inside",
	core.MarkRemoved:           "removed",
	core.MarkRemoveFailed:      "remove-failed",
	core.MarkDuplicate:         "duplicate",
	core.MarkDuplicateInFlight: "duplicate-in-flight",
	core.MarkSequenceGap:       "sequence-gap",
	core.MarkProducerFenced:    "producer-fenced",
	core.MarkProducerForgotten: "producer-forgotten",
	core.MarkProducerUndone:    "producer-undone",
	core.MarkOverloaded:        "overloaded",
	core.MarkCloseClean:        "close-clean",
	core.MarkCloseUnclean:      "close-unclean",
	core.MarkDamagedReader:     "damaged-reader",
	core.MarkClockBack:         "clock-back",
	core.MarkSidecarSaved:      "sidecar-saved",
}

func coreMarkName(m core.Mark) string {
	if coreMarkNames[m] == "" {
		return "mark " + strconv.Itoa(int(m))
	}
	return coreMarkNames[m]
}
