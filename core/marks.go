package core

// Mark is a rare branch or verdict that a simulator run must reach.
type Mark uint8

// Marks of the core, by where they lie.
const (
	MarkNewLog            Mark = iota // an absent or empty directory became a log
	MarkSuperOneSlot                  // one superblock slot was missing or did not verify
	MarkSuperRefused                  // no slot verifies: refused
	MarkSuperNewer                    // a newer format was refused
	MarkCleanOpen                     // the life before closed cleanly; nothing to rescue
	MarkIncompleteOpen                // the life before died while opening
	MarkTornTail                      // torn batch above evidence, cut by lineage
	MarkTornChecksum                  // whole batch with a wrong checksum above evidence, taken as torn
	MarkRefusedChecksum               // the same under on_commit: refused
	MarkEvidenceBehind                // evidence was found behind the first damage of a file
	MarkCorrupt                       // damage below evidence
	MarkAllowDamaged                  // and served around
	MarkRepairLost                    // a repair declared a damaged span lost
	MarkRepairSuffix                  // a repair gave up a missing end
	MarkRebuilt                       // a repair derived the superblock from the segments
	MarkLostSuffix                    // evidence names records that no file holds
	MarkVoidFile                      // a file void by lineage is kept
	MarkSuperseded                    // a file replaced over its whole span is removed
	MarkLeftover                      // a file wholly below HotStart is removed
	MarkUnfinished                    // an unfinished creation is removed
	MarkTmp                           // an unfinished *.tmp is removed
	MarkQuarantine                    // a file went to quarantine
	MarkHeaderByName                  // a damaged header over verifying batches was used by its name
	MarkForeign                       // a file of another log was refused
	MarkEpochAhead                    // a file newer than the superblock was refused
	MarkFooterDerived                 // a footer or sidecar had to be derived again
	MarkSidecarUsed                   // a sidecar index stood in for a footer
	MarkRescue                        // content above evidence was rescued
	MarkRescueReplacement             // a rescue of an earlier life was rescued again
	MarkReplan                        // a source changed under a Replace: planned anew
	MarkOpenIOError                   // an I/O error ended an open
	MarkOpenNoSpace                   // an open waits for free space and serves what is proven
	MarkRollSize                      // roll because the cohort did not fit
	MarkRollAge                       // roll by age
	MarkRollProducers                 // roll because the footer is full
	MarkRollExplicit                  // roll on request
	MarkOwnSegment                    // a batch larger than a segment
	MarkRollback                      // a failed write was undone
	MarkRollbackFailed                // and could not be undone: poisoned
	MarkCreateFailed                  // a segment could not be created: definite failure
	MarkSealFailed                    // a footer could not be written: rolled back, stays active
	MarkNoSpace                       // ENOSPC met by a write
	MarkLowSpace                      // appends refused below min_free_bytes
	MarkSpaceBack                     // space returned
	MarkPoisonSync                    // poisoned by a failed file sync
	MarkPoisonDir                     // poisoned by a failed directory sync or a superblock sync
	MarkSyncOverlap                   // a Sync was issued beside a Commit in flight
	MarkSyncPartial                   // and claimed less than what was written
	MarkAckPaused                     // acks paused: the oldest unsynced byte is too old
	MarkIdleSave                      // the frontier was saved after quiet
	MarkSuperRetry                    // a failed superblock save is tried again on the same slot
	MarkSuperGrown                    // the superblock outgrew its file
	MarkPrepared                      // zeros were written ahead
	MarkPrepareWait                   // a Commit waited for a Prepare
	MarkPrepareFailed                 // zero-filling failed and was given up for the segment
	MarkRetentionSize                 // retention by size moved Start
	MarkRetentionAge                  // retention by age moved Start
	MarkTrim                          // Trim moved Start
	MarkTrimSync                      // a Trim needed a sync first
	MarkTrimInside                    // Start lies inside a segment
	MarkRemoved                       // trimmed files were removed
	MarkRemoveFailed                  // a removal failed and is tried again
	MarkDuplicate                     // a producer's duplicate got the original span
	MarkDuplicateInFlight             // while the original was not acked yet
	MarkSequenceGap                   // a producer's gap was refused
	MarkProducerFenced                // an old producer epoch was refused
	MarkProducerForgotten             // the silent longest was forgotten
	MarkProducerUndone                // a roll-back restored producer state
	MarkOverloaded                    // pending_bytes reached
	MarkCloseClean                    // a clean close
	MarkCloseUnclean                  // a close that could not seal or save
	MarkDamagedReader                 // a reader reported damage
	MarkClockBack                     // the wall clock stepped back between appends
	MarkSidecarSaved                  // a sidecar index was written
	MarkGapRescan                     // a gap behind a file that only its footer vouched for: it was read whole
	MarkBelowStart                    // what nothing serves lies below Start, and is no damage
	MarkEmptySegment                  // a segment that never took a batch was removed by a close
	MarkCloseEarly                    // a close while the log was opening
	MarkColdMissing                   // the first records are in a cold tier, and none is configured: refused
	MarkColdAbsent                    // neither directory nor bucket holds a log: refused without create
	MarkColdWait                      // an open waits for the cold tier
	MarkDegraded                      // and serves meanwhile what is proven on disk
	MarkUnclaimed                     // or while a tier that was read does not take the claim
	MarkManifestGone                  // objects are there, and no manifest is
	MarkManifestNewer                 // a newer manifest was refused
	MarkManifestDamaged               // a damaged manifest was refused
	MarkManifestOdd                   // a manifest was read that cannot be the newest
	MarkRebuild                       // an empty directory was rebuilt from the cold tier
	MarkTakenOver                     // the manifest's lineage is newer than the directory's
	MarkTierGap                       // records between Start and HotStart are in no tier: refused
	MarkAcceptLoss                    // and were given up
	MarkColdServes                    // an open found in the cold tier what the disk lacks
	MarkClaimLost                     // another owner wrote the manifest while this one opened
	MarkSwapDoubt                     // the outcome of a swap was unknown
	MarkSwapOurs                      // and it had happened
	MarkFenced                        // another owner has taken over: poisoned
	MarkUploadOrphan                  // a started upload of an earlier life was given up
	MarkUploadFailed                  // an upload failed
	MarkExportBlocked                 // damage stops the export
	MarkExportLost                    // a span declared lost was recorded as such
	MarkExported                      // a segment is in the cold tier
	MarkObjectDeleted                 // objects were deleted
	MarkEvicted                       // files left the disk because the cold tier holds them
	MarkRelieved                      // before their time, because space was short
	MarkOffload                       // on request
	MarkRetentionCold                 // total retention moved Start in the cold tier
	MarkObjectScanned                 // an open read the footer of an object
	MarkObjectWait                    // and had to ask again
	MarkObjectUnread                  // or found none that is whole: producers in it are forgotten
	MarkPage                          // a page of the manifest was written
	MarkPageFailed                    // and nobody knows whether it is there
	MarkLookFailed                    // a file stays on disk, because the object of its records is gone or damaged
	MarkHealed                        // damage was healed: the cold tier serves what a file held
	MarkHealedOnDisk                  // and was copied back to the disk
	MarkHealFailed                    // or could not be
	MarkWarmDoubt                     // a new marker, because nobody knows what the warm tier holds
	MarkCutHeld                       // a commit waits until what is written is mirrored
	MarkWarmSource                    // a batch to mirror does not verify on disk, or cannot be read
	MarkWarmPassed                    // and is passed over
	MarkWarmFull                      // the warm tier had no memory
	MarkWarmLost                      // it lost what it had
	MarkWarmShort                     // too few replicas confirmed
	MarkWarmWaived                    // and the policy acks nevertheless
	MarkWarmStalled                   // records waited too long for it
	MarkRollWarm                      // roll, because the active segment alone is as much as it is to hold
	MarkWarmTrimmed                   // entries were removed
	MarkWarmOdd                       // an entry does not verify and is passed over
	MarkWarmRefill                    // records that only the warm tier had were copied to the disk
	MarkCount
)

// MarkSet is a set of marks.
type MarkSet [(MarkCount + 63) / 64]uint64

// Has reports whether a mark is in the set.
func (s *MarkSet) Has(m Mark) bool { return s[m>>6]&(1<<(m&63)) != 0 }

// Add puts a mark into the set.
func (s *MarkSet) Add(m Mark) { s[m>>6] |= 1 << (m & 63) }

// Marks returns the marks reached by this Log since Open.
func (l *Log) Marks() *MarkSet { return &l.marks }

func (l *Log) mark(m Mark) { l.marks.Add(m) }
