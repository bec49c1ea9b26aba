package segment

// Footer is the summary in a footer's trailer. A footer is a pure function of the segment's
// batches: derived, never evidence, never trusted over records.
type Footer struct {
	ID         ID
	Base, End  Offset // records of the file: [Base, End)
	DataEnd    int64  // position after the last batch
	Batches    uint64
	MinTime    Time // least and greatest max-timestamp of the batches
	MaxTime    Time
	AppendTime Time   // of the newest batch
	Commit     uint64 // counter of the last batch
	Chain      uint32 // CRC of the last placement header
	Epoch      Epoch
}
