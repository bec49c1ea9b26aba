package kafka

import (
	"fmt"
	"io"

	"varve/broker/kafka/batch"
)

// UnpackMax is how many bytes of records a node takes in one batch, after decompressing, unless Options say
// otherwise.
const UnpackMax = 128 << 20

// Unpack verifies a stored batch down to its records, and returns these, decompressed, for batch.Walker.Plain.
// It is for who looks at one batch after the other: at most UnpackMax bytes are held.
func Unpack(payload []byte) (h batch.Header, records []byte, err error) {
	if h, err = batch.Verify(payload); err != nil {
		return h, nil, err
	}
	records = batch.Records(payload)
	codec := h.Attributes.Codec()
	if codec != batch.Plain {
		d := decompressors[codec].Get().(decompressor)
		if err = d.reset(records, UnpackMax); err == nil {
			records, err = io.ReadAll(io.LimitReader(d, UnpackMax+1))
		}
		if d.rest() {
			decompressors[codec].Put(d)
		}
	}
	switch {
	case err != nil:
		return h, nil, &batch.Error{Fault: batch.Corrupt, Expected: "records compressed by " + codec.String(), Found: err.Error()}
	case len(records) > UnpackMax:
		return h, nil, &batch.Error{Fault: batch.Oversized, Expected: fmt.Sprintf("at most %d bytes after decompressing", UnpackMax), Found: "more"}
	}
	var w batch.Walker
	w.Plain(&h, records)
	_, err = w.MaxTime()
	return h, records, err
}
