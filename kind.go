package varve

import (
	"fmt"

	"varve/core/segment"
	"varve/tiers/disk"
)

// KindError refuses an append of Varve records to a log of Kafka's RecordBatches: whoever reads those could not
// get past it.
type KindError struct {
	Holds uint8 // the kind of payload that the log holds
	Got   uint8 // and that of the batch
}

func (e *KindError) Error() string {
	return fmt.Sprintf("varve: batch refused: its payload is of kind %d, and the log holds payloads of kind %d (1: Varve records, 2: RecordBatches of Kafka's)", e.Got, e.Holds)
}

// NewestKind returns the kind of the payloads in the newest file of a log's directory that holds any, as far as
// the first batch in it says so; 0: there is none that does. It writes nothing.
func NewestKind(fs disk.FS) uint8 {
	entries, err := fs.List(nil)
	if err != nil {
		return 0
	}
	for below := ^segment.ID(0); ; {
		name, newest := "", segment.ID(0)
		for _, e := range entries {
			_, id, kind, ok := segment.ParseName(e.Name)
			if ok && kind == segment.NameSegment && id > newest && id < below {
				name, newest = e.Name, id
			}
		}
		if name == "" {
			return 0
		}
		if kind := kindIn(fs, name, newest); kind != 0 {
			return kind
		}
		below = newest
	}
}

// kindIn returns the kind of the first batch in a file, 0 where there is none.
func kindIn(fs disk.FS, name string, id segment.ID) uint8 {
	f, err := fs.Open(name, disk.Read)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	b := make([]byte, max(segment.HeaderBytes, segment.BatchHeaderBytes))
	if _, err := f.ReadAt(b[:segment.HeaderBytes], 0); err != nil {
		return 0
	}
	h, _, verdict, _ := segment.ReadHeader(b[:segment.HeaderBytes])
	if verdict != segment.HeaderGood {
		return 0
	}
	b = b[:segment.BatchHeaderBytes]
	if _, err := f.ReadAt(b, int64(h.SectorBytes)); err != nil {
		return 0
	}
	_, i, _, ok := segment.ReadBatchHeader(b, segment.PlacementSeed(h.LogID, id), segment.IdentitySeed(h.LogID))
	if !ok {
		return 0
	}
	return i.Kind
}
