package segment

// Break says why a run of verifying batches ends where it does.
type Break uint8

// Breaks.
const (
	BreakNone    Break = iota // nothing but zeros, or the footer, or the end of the file follows
	BreakTorn                 // cut by the end of the file, header not verifying, or payload not verifying with an all-zero sector overlapping the batch
	BreakPayload              // header good, every sector written, payload CRC wrong
)

// Run is a sequence of batches in one file that verify and follow each other: offsets contiguous,
// chain unbroken, commit counter never falling.
type Run struct {
	First, End  Offset
	Pos, EndPos int64 // bytes of the batches: [Pos, EndPos)
	Batches     uint64
	MinTime     Time // least and greatest max-timestamp of the batches
	MaxTime     Time
	AppendTime  Time   // of the newest batch
	Commit      uint64 // counter of the last batch
	Chain       uint32 // CRC of the last placement header
	Break       Break  // what ended the run
	BreakPos    int64  // where the next batch was expected
}

// HeaderVerdict is what a segment header turned out to be.
type HeaderVerdict uint8

// Header verdicts.
const (
	HeaderGood     HeaderVerdict = iota
	HeaderDamaged                // cut short, zero, bad checksum, or fields out of bounds
	HeaderForeign                // verifies, but of another log
	HeaderNewer                  // of a newer format version
	HeaderMisnamed               // verifies, but not under this file name
)

// FileInfo is what a scan found in one segment file: facts, no decisions.
type FileInfo struct {
	Bytes   int64
	Verdict HeaderVerdict
	Header  Header // as in the file; with a damaged header: base and id from the name, epoch from the batches
	Version uint16 // as found, for HeaderNewer

	Sealed  bool   // a footer that verifies ends the file
	Sidecar bool   // not Sealed, but the sidecar index beside it verifies and stands in for the footer
	Footer  Footer // valid if Sealed or Sidecar; a sidecar may end before the file's batches do

	Head    Break // why no run starts where the first batch belongs; BreakNone: one does, or the file is empty
	HeadPos int64

	Scanned   bool            // batches were verified one by one; else only header and footer were read
	Runs      []Run           // in file order; none if no batch verifies
	Evidence  Offset          // greatest frontier of any placement header that verifies, also behind a break
	Epoch     Epoch           // of the batches; 0 if none verified
	Tail      bool            // bytes other than zero follow the last run (torn or void)
	Producers []ProducerState // touched by this file, last batches each; of the first run or the footer
}

// Lineage says that an epoch owns the offsets from First up to the First of the next entry.
type Lineage struct {
	Epoch Epoch
	First Offset
}

// ProducerBatches is how many batches of a producer are remembered.
const ProducerBatches = 5

// ProducerState is what is remembered of one idempotent producer.
type ProducerState struct {
	ID      int64
	Epoch   int16
	Count   uint8 // of Batches in use, oldest first
	Batches [ProducerBatches]ProducerBatch
}

// ProducerBatch is one accepted batch of a producer.
type ProducerBatch struct {
	Sequence int32 // of the first record
	Records  uint32
	Base     Offset
}

// Last returns the base offset of the newest batch.
func (s *ProducerState) Last() Offset { return s.Batches[s.Count-1].Base }

// Remember notes a batch of this producer. A newer producer epoch forgets the batches of the old.
func (s *ProducerState) Remember(i *Identity) {
	s.RememberBatch(i.ProducerEpoch, ProducerBatch{Sequence: i.Sequence, Records: i.Records, Base: i.Base})
}

// RememberBatch is Remember for a batch that a footer recorded.
func (s *ProducerState) RememberBatch(epoch int16, b ProducerBatch) {
	if epoch > s.Epoch {
		s.Count = 0
		s.Batches = [ProducerBatches]ProducerBatch{}
	}
	s.Epoch = epoch
	if s.Count == ProducerBatches {
		copy(s.Batches[:], s.Batches[1:])
		s.Count--
	}
	s.Batches[s.Count] = b
	s.Count++
}
