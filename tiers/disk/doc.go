// Package disk is the hot tier: it carries out the core's effects on one log directory, through
// the seam FS, and serves readers.
//
// Store runs effects. Run carries one out at once; Step does it call group by call group, so that
// a simulator can put other events between the write and the sync of one effect:
//
//	Create     open, write header | sync file | sync directory
//	Commit     write | sync, if asked for
//	Rollback   truncate | sync
//	Seal       write footer, truncate | sync
//	Sync       sync
//	SaveSuper  new log first: make directory | sync parent
//	           fresh: write tmp | sync | rename | sync directory
//	           in place: write | sync
//	Replace    copy into tmp | sync | rename | sync directory
//	SaveIndex  derive into tmp | sync | rename | sync directory
//	Remove     unlink all | sync directory
//	Quarantine make directory, rename all | sync quarantine | sync directory
//	List, LoadSuper, Scan, Prepare, Space   one step
//
// Every failure names its step in the effect's Result, because the core treats a failed sync
// unlike any other failure. The store decides nothing: it neither retries nor cleans up after a
// failure, beyond removing its own unfinished *.tmp where it can.
package disk
