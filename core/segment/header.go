package segment

// Kind says how a segment file came to be.
type Kind uint8

// Segment kinds.
const (
	Created     Kind = 1 // by an append; its batches have the epoch of its owner
	Replacement Kind = 2 // by a rescue or a repair: a verified copy of [Base, End) of another file
)

// Header opens a segment file.
type Header struct {
	Kind        Kind
	Sync        SyncMode
	SectorBytes uint32
	LogID       LogID
	ID          ID
	Epoch       Epoch // of the batches in this file
	Base        Offset
	End         Offset // end of a replacement's span; 0 in a created file
	Created     Time
	Nonce       uint64 // of the owner
}
