package faultfs

// Rand is a counter-based generator (SplitMix64): the n-th draw after Seed is a pure function of
// the seed and n. The zero value is seeded with 0.
type Rand struct{ state uint64 }

// Seed restarts the stream.
func (r *Rand) Seed(seed uint64) { r.state = seed }

// Next returns 64 random bits.
func (r *Rand) Next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	return mix(r.state)
}

// Below returns a number in [0, n); 0 if n is 0.
func (r *Rand) Below(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return (r.Next() >> 11) % n
}

// Chance is true in about rate of 65,536 draws.
func (r *Rand) Chance(rate uint16) bool { return uint16(r.Next()>>48) < rate }

// mix is the finisher of SplitMix64; every input bit reaches every output bit.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
