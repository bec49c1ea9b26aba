package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"varve"
	"varve/broker/kafka"
	"varve/broker/kafka/batch"
)

// recordsOf yields the records that an inspection found from a position on, as Inspection.Records does, and
// those of RecordBatches as well: a partition of a node is a log like any other.
func recordsOf(ctx context.Context, x *varve.Inspection, from varve.Position) iter.Seq2[varve.Record, error] {
	return func(yield func(varve.Record, error) bool) {
		r := x.NewReader(from, varve.ReadOptions{})
		defer r.Close() //nolint:errcheck // opened for reading only
		for r.Position().Offset < x.End {
			b, err := r.Next(ctx)
			if err != nil {
				yield(varve.Record{}, err)
				return
			}
			walk := ownRecords
			if b.Kind == varve.KindKafka {
				walk = kafkaRecords
			}
			if !walk(r, &b, max(from.Offset, 0), yield) {
				return
			}
		}
	}
}

// ownRecords yields the records of a batch of Varve's own. It reports whether to go on.
func ownRecords(r *varve.Reader, _ *varve.BatchView, _ int64, yield func(varve.Record, error) bool) bool {
	for {
		rec, ok, err := r.Record()
		if err != nil {
			yield(varve.Record{}, err)
			return false
		}
		if !ok {
			return true
		}
		if !yield(rec, nil) {
			return false
		}
	}
}

// kafkaRecords yields the records of a RecordBatch from an offset on, once all of it was verified.
func kafkaRecords(r *varve.Reader, b *varve.BatchView, from int64, yield func(varve.Record, error) bool) bool {
	h, records, err := kafka.Unpack(b.Payload)
	if err == nil && h.Records != b.Records {
		err = &batch.Error{Fault: batch.Corrupt, Record: -1, Expected: count(int(b.Records), "record"), Found: fmt.Sprint(h.Records)}
	}
	if err != nil {
		expected, found := "a RecordBatch of Kafka's", oneLine(err)
		if e := (*batch.Error)(nil); errors.As(err, &e) {
			expected, found = "a RecordBatch with "+e.Expected, e.Found
		}
		yield(varve.Record{}, r.Malformed(expected, found))
		return false
	}
	var w batch.Walker
	w.Plain(&h, records)
	var rec batch.Record
	var headers []varve.Header
	for w.Record(&rec) {
		offset := b.Span.First + int64(rec.Number)
		if offset < from {
			continue
		}
		headers = headers[:0]
		for _, x := range rec.Headers {
			headers = append(headers, varve.Header{Key: x.Key, Value: x.Value})
		}
		if !yield(varve.Record{Offset: offset, Epoch: b.Epoch, Time: time.UnixMilli(rec.Time), Key: rec.Key, Value: rec.Value, Headers: headers}, nil) {
			return false
		}
	}
	return true
}
