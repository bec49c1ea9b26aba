package kafka

import "varve/broker/kafka/verdict"

// code is an error as Kafka's protocol numbers it.
type code = verdict.Code

// Codes that are used here.
const (
	unknownServerError                = verdict.UnknownServerError
	none                              = verdict.None
	offsetOutOfRange                  = verdict.OffsetOutOfRange
	corruptMessage                    = verdict.CorruptMessage
	unknownTopicOrPartition      code = 3
	leaderNotAvailable           code = 5
	notLeaderOrFollower               = verdict.NotLeaderOrFollower
	requestTimedOut                   = verdict.RequestTimedOut
	messageTooLarge                   = verdict.MessageTooLarge
	coordinatorNotAvailable      code = 15
	invalidTopic                 code = 17
	notEnoughReplicas                 = verdict.NotEnoughReplicas
	notEnoughReplicasAfterAppend      = verdict.NotEnoughReplicasAfterAppend
	invalidRequiredAcks          code = 21
	invalidTimestamp                  = verdict.InvalidTimestamp
	unsupportedVersion           code = 35
	topicAlreadyExists           code = 36
	invalidPartitions            code = 37
	invalidReplicationFactor     code = 38
	invalidReplicaAssignment     code = 39
	invalidConfig                code = 40
	invalidRequest               code = 42
	policyViolation              code = 44
	outOfOrderSequence                = verdict.OutOfOrderSequence
	invalidProducerEpoch              = verdict.InvalidProducerEpoch
	invalidTxnState                   = verdict.InvalidTxnState
	transactionalIDNotAuthorized code = 53
	kafkaStorageError                 = verdict.KafkaStorageError
	fetchSessionIDNotFound       code = 70
	fencedLeaderEpoch                 = verdict.FencedLeaderEpoch
	unknownLeaderEpoch                = verdict.UnknownLeaderEpoch
	unsupportedCompression       code = 76
	offsetNotAvailable                = verdict.OffsetNotAvailable
	invalidRecord                     = verdict.InvalidRecord
	unknownTopicID               code = 100
	unsupportedEndpointType      code = 115
)
