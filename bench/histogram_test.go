package main

import (
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 10*time.Second; d += d/50 + 1 {
		b := bucketOf(d)
		if b < last {
			t.Fatalf("bucket of %v is %d, below %d", d, b, last)
		}
		last = b
		if low := bottom(b); low > d || float64(d-low) > float64(d)/32 {
			t.Fatalf("%v is in bucket %d, which starts at %v", d, b, low)
		}
	}
}

func TestQuantile(t *testing.T) {
	var h, other histogram
	for i := range 100 {
		h.add(time.Duration(i) * time.Microsecond)
		other.add(time.Millisecond)
	}
	if got := h.quantile(0.5); got < 48*time.Microsecond || got > 50*time.Microsecond {
		t.Errorf("p50 = %v", got)
	}
	h.merge(&other)
	if got := h.quantile(0.99); got < 960*time.Microsecond || got > time.Millisecond {
		t.Errorf("p99 = %v", got)
	}
}
