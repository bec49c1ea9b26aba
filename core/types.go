package core

import "varve/core/segment"

// Offset numbers records, dense from 0.
type Offset = segment.Offset

// Time is nanoseconds.
type Time = segment.Time

// Epoch numbers the lives of a log.
type Epoch = segment.Epoch

// Now is a reading of both clocks. Durations use Mono; only timestamps, retention and reports use
// Wall, which may jump.
type Now struct{ Mono, Wall Time }

// Producer identifies an idempotent producer's batch; ID < 0 means none.
type Producer struct {
	ID       int64
	Epoch    int16
	Sequence int32 // of the first record
}

// NoProducer marks a batch that is not idempotent.
var NoProducer = Producer{ID: -1, Epoch: -1, Sequence: -1}

// Batch is what a client appends: an opaque payload of one or more records. The payload must not
// change until the ticket's cohort has its outcome.
type Batch struct {
	Payload    []byte
	PayloadCRC uint32 // segment.PayloadCRC(Payload), computed on the caller's goroutine
	Kind       uint8  // segment.KindRecords, ...
	Records    uint32 // >= 1
	MaxTime    Time   // greatest timestamp of the records
	Producer   Producer
}

// Ticket is an accepted append: the span that it will have if it is acked, and the cohort whose
// outcome decides.
type Ticket struct {
	First, End Offset
	Epoch      Epoch
	Cohort     uint64 // 0: a duplicate of an acked batch; acked already
	Duplicate  bool
}

// Outcome is the one fate of a cohort. Outcomes come in cohort order.
type Outcome struct {
	Cohort uint64
	Err    error // nil: acked; ErrUnknown: in or out; anything else: definitely not in the log
}
