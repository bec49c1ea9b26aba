package topics

// Kind is what an entry of the catalogue says.
type Kind uint8

// Entries. A create or a growth begins with an entry of intent, so that whatever directories a crash
// leaves are known by name and number.
const (
	Begin      Kind = iota // incarnation given out; its partitions are about to be made
	Create                 // they are made: the topic exists
	Grow                   // partitions up to Count are about to be made
	Partitions             // they are made: the topic has Count
	Shrunk                 // those of a growth that came to nothing are removed
	Configure              // the topic has another configuration
	Delete                 // the topic does not exist any more
	Gone                   // nothing is left of the incarnation
	Producers              // producer ids below Count may have been given out
	Snapshot               // everything, so that what is before can go
	kindCount
)

var kindNames = [kindCount]string{
	"begin", "create", "grow", "partitions", "shrunk", "config", "delete", "gone", "producers", "snapshot",
}

// String returns the name in the text.
func (k Kind) String() string { return kindNames[k] }

// ID identifies an incarnation of a topic to clients.
type ID [16]byte

// Pair is one value of a topic's configuration.
type Pair struct{ Name, Value string }

// Entry is one entry of the catalogue. Which fields count depends on its kind.
type Entry struct {
	Kind        Kind
	Incarnation uint64
	Count       int64 // partitions, or the next producer id
	Topic       string
	ID          ID
	Time        int64  // milliseconds since 1970
	Config      []Pair // sorted by name

	// Of a snapshot: everything that Incarnation (the next one) and Count (of producers) do not say.
	Topics []Topic
}

// Status is where an incarnation stands.
type Status uint8

// Statuses. Begun leads to Live or, if it came to nothing, to Dead; Live to Dead; and Dead to nothing.
const (
	Begun Status = iota
	Live
	Dead
	statusCount
)

var statusNames = [statusCount]string{"begun", "live", "dead"}

// String returns the name in the text.
func (s Status) String() string { return statusNames[s] }

// Topic is one incarnation, as the catalogue knows it.
type Topic struct {
	Name        string
	ID          ID
	Incarnation uint64
	Partitions  int32
	Growing     int32 // intended number of partitions, above Partitions; 0: it does not grow
	Status      Status
	Time        int64  // of its creation, milliseconds since 1970
	Config      []Pair // sorted by name
}

// PartitionsMax bounds the partitions of a topic, and of a node.
const PartitionsMax = 1 << 20
