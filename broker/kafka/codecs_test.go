package kafka

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"

	"varve/broker/kafka/batch"
)

// framed compresses as the Java library does, in blocks of so many bytes.
func framed(b []byte, block int) []byte {
	out := append(bytes.Clone(snappyMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	for len(b) > 0 {
		n := min(block, len(b))
		c := snappy.Encode(nil, b[:n])
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(c))), c...)
		b = b[n:]
	}
	return out
}

// TestSnappyNeedsItsLongestBlock: neither the length of a batch nor what it claims says what it takes.
func TestSnappyNeedsItsLongestBlock(t *testing.T) {
	plain := make([]byte, 4<<20)
	for i := range plain {
		plain[i] = byte(i * i >> 7)
	}
	raw := snappy.Encode(nil, plain)
	for name, c := range map[string]struct {
		records []byte
		least   int64
		most    int64
	}{
		"nothing":        {nil, 0, 0},
		"a block":        {raw, 4 << 20, 4 << 20},
		"java":           {framed(plain, 32<<10), 32 << 10, 32 << 10},
		"two lengths":    {append(framed(plain[:100], 100), framed(plain, 1<<20)[snappyFrameBytes:]...), 1 << 20, 1 << 20},
		"a claim":        {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2}, 0, 24 * 7},
		"a cut frame":    {framed(plain, 32<<10)[:90], 0, 0},
		"a short header": {snappyMagic, 0, 0},
	} {
		if got := needs(batch.Snappy, c.records); got < c.least || got > c.most {
			t.Errorf("%s: needs %d, want %d to %d", name, got, c.least, c.most)
		}
	}
}

// TestBigBatchesWaitAlone: those that wait for the memory of a big one keep no other batch from being looked at.
func TestBigBatchesWaitAlone(t *testing.T) {
	c := newCodecs(64 << 20)
	big := snappy.Encode(nil, make([]byte, bigBytes+1))
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, _ = w.Write(make([]byte, 100))
	_ = w.Close()
	use := func(*batch.Walker) error { return nil }
	c.big <- struct{}{}
	done := make(chan struct{})
	waiters := 4 * runtime.GOMAXPROCS(0)
	for range waiters {
		go func() {
			var walker batch.Walker
			_ = c.walk(&walker, &batch.Header{Attributes: batch.Attributes(batch.Snappy), Records: 1}, big, use)
			done <- struct{}{}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	passed := make(chan error, 1)
	go func() {
		var walker batch.Walker
		passed <- c.walk(&walker, &batch.Header{Attributes: batch.Attributes(batch.Gzip), Records: 1}, small.Bytes(), use)
	}()
	select {
	case err := <-passed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a small batch waits behind big ones")
	}
	<-c.big
	for range waiters {
		<-done
	}
}
