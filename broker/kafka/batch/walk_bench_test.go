package batch

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkWalk is a batch of 1,000 records of 128 B, whose times a client gave: per record.
func BenchmarkWalk(b *testing.B) {
	const records = 1000
	var body []byte
	for i := range int32(records) {
		r := kmsg.Record{TimestampDelta64: int64(i / 10), OffsetDelta: i, Value: make([]byte, 128)}
		one := r.AppendTo(nil)
		r.Length = int32(len(one) - 1) // its own length takes one byte while it is 0
		body = r.AppendTo(body)
	}
	h := Header{Records: records}
	var w Walker
	for range b.N/records + 1 {
		w.Plain(&h, body)
		if _, err := w.MaxTime(); err != nil {
			b.Fatal(err)
		}
	}
}
