package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets of 1/32 of their power of two: 3 % exact, and cheap enough
// not to show in the CPU figures.
type histogram struct {
	counts [64 * 32]uint64
	total  uint64
}

func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < 32 {
		return int(n)
	}
	shift := bits.Len64(n) - 6
	return (shift+1)*32 + int(n>>shift) - 32
}

// bottom is the least duration of a bucket.
func bottom(bucket int) time.Duration {
	if bucket < 32 {
		return time.Duration(bucket)
	}
	return time.Duration(32+bucket%32) << (bucket/32 - 1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
}

// quantile returns the duration that a share q of all does not exceed; 0 without any.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	left := uint64(q * float64(h.total))
	for i, n := range h.counts {
		if n > left {
			return bottom(i)
		}
		left -= n
	}
	return bottom(len(h.counts) - 1)
}
