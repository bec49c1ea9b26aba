package kafka

// code is an error as Kafka's protocol numbers it.
type code = int16

// Codes that are used here.
const (
	unknownServerError           code = -1
	none                         code = 0
	offsetOutOfRange             code = 1
	corruptMessage               code = 2
	unknownTopicOrPartition      code = 3
	leaderNotAvailable           code = 5
	notLeaderOrFollower          code = 6
	requestTimedOut              code = 7
	messageTooLarge              code = 10
	coordinatorNotAvailable      code = 15
	invalidTopic                 code = 17
	notEnoughReplicas            code = 19
	notEnoughReplicasAfterAppend code = 20
	invalidRequiredAcks          code = 21
	invalidTimestamp             code = 32
	unsupportedVersion           code = 35
	topicAlreadyExists           code = 36
	invalidPartitions            code = 37
	invalidReplicationFactor     code = 38
	invalidReplicaAssignment     code = 39
	invalidConfig                code = 40
	invalidRequest               code = 42
	policyViolation              code = 44
	outOfOrderSequence           code = 45
	invalidProducerEpoch         code = 47
	invalidTxnState              code = 48
	transactionalIDNotAuthorized code = 53
	kafkaStorageError            code = 56
	fetchSessionIDNotFound       code = 70
	fencedLeaderEpoch            code = 74
	unknownLeaderEpoch           code = 75
	unsupportedCompression       code = 76
	offsetNotAvailable           code = 78
	invalidRecord                code = 87
	unknownTopicID               code = 100
	unsupportedEndpointType      code = 115
)
