package kafka_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compress compresses as Kafka's codec of that number; 5 is snappy in the Java library's frame.
func compress(codec int16, b []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case 0:
		return b
	case 1:
		w = gzip.NewWriter(&out)
	case 2:
		return snappy.Encode(nil, b)
	case 3:
		w = lz4.NewWriter(&out)
	case 4:
		w, _ = zstd.NewWriter(&out)
	case 5:
		out.WriteString("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
		for len(b) > 0 {
			block := snappy.Encode(nil, b[:min(len(b), 100)])
			out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(block))))
			out.Write(block)
			b = b[min(len(b), 100):]
		}
		return out.Bytes()
	}
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}
