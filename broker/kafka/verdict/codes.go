package verdict

// Code is an error as Kafka's protocol numbers it.
type Code = int16

// Codes of answers about partitions.
const (
	None                         Code = 0
	UnknownServerError           Code = -1
	OffsetOutOfRange             Code = 1
	CorruptMessage               Code = 2
	NotLeaderOrFollower          Code = 6
	RequestTimedOut              Code = 7
	MessageTooLarge              Code = 10
	NotEnoughReplicas            Code = 19
	NotEnoughReplicasAfterAppend Code = 20
	InvalidTimestamp             Code = 32
	OutOfOrderSequence           Code = 45
	InvalidProducerEpoch         Code = 47
	InvalidTxnState              Code = 48
	KafkaStorageError            Code = 56
	FencedLeaderEpoch            Code = 74
	UnknownLeaderEpoch           Code = 75
	OffsetNotAvailable           Code = 78
	InvalidRecord                Code = 87
)
