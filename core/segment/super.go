package segment

// Superblock is the log's root: identity, claims and watermarks. Two slots hold it; the valid one
// with the higher sequence wins. Every watermark in it may be stale: each is only ever raised.
type Superblock struct {
	Sequence         uint64 // of the save, rises by one each save
	LogID            LogID
	Epoch            Epoch // highest epoch claimed by an open
	Nonce            uint64
	Sync             SyncMode
	SectorBytes      uint32
	Clean            bool // the last act of a life that closed: Frontier is the end
	Complete         bool // the open that claimed Epoch has finished its recovery; Lineage counts
	Start            Offset
	HotStart         Offset
	Frontier         Offset // proven durable
	Committed        Offset // and the epoch that owned it
	CommittedEpoch   Epoch
	ManifestSequence uint64    // highest seen; 0 without a cold tier
	Created          Time      // wall time of the log's creation
	Lineage          []Lineage // of the last completed open, from the entry that owns Start-1 on
}

// SuperBytesMin is the size of a superblock file; a long lineage grows it in steps of this size.
const SuperBytesMin = 4096

// SuperBytesMax bounds a superblock file; a lineage that does not fit is refused.
const SuperBytesMax = 1 << 20
