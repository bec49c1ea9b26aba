package sim

import "math/bits"

// Rand is a counter-based generator: draw n of a stream is a pure function of the stream's seed and
// n. Every event of a schedule has a seed of its own, so that deleting one event leaves the draws
// of all others as they were; that is what makes shrinking work.
type Rand struct {
	seed  uint64
	count uint64
}

// golden is 2^64 divided by the golden ratio: consecutive multiples are spread evenly.
const golden = 0x9e3779b97f4a7c15

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// sub returns the n-th seed derived from a seed.
func sub(seed, n uint64) uint64 { return mix(seed + n*golden) }

// Seed starts the stream of a seed.
func (r *Rand) Seed(seed uint64) { r.seed, r.count = seed, 0 }

// Next returns the next 64 bits.
func (r *Rand) Next() uint64 {
	r.count++
	return mix(r.seed + r.count*golden)
}

// Below returns a number in [0, n); 0 if n <= 0.
func (r *Rand) Below(n int64) int64 {
	if n <= 0 {
		return 0
	}
	high, _ := bits.Mul64(r.Next(), uint64(n))
	return int64(high)
}

// Between returns a number in [low, high].
func (r *Rand) Between(low, high int64) int64 { return low + r.Below(high-low+1) }

// Chance reports true with probability p/65536.
func (r *Rand) Chance(p uint32) bool { return uint32(r.Next()>>48) < p }
