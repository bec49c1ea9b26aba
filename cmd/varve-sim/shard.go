package main

import (
	"fmt"
	"strconv"
	"strings"
)

// seedShard is the part i of n of a range of seeds: those that leave i when divided by n. The zero value
// is the whole range.
type seedShard struct{ i, n uint64 }

// shardsMax is far above the number of machines that share a range.
const shardsMax = 1 << 16

// UnmarshalText reads i/n.
func (x *seedShard) UnmarshalText(text []byte) error {
	a, b, _ := strings.Cut(string(text), "/")
	i, err1 := strconv.ParseUint(a, 10, 64)
	n, err2 := strconv.ParseUint(b, 10, 64)
	if err1 != nil || err2 != nil || n < 1 || n > shardsMax || i >= n {
		return fmt.Errorf("%q: want i/n, such as 0/4 to 3/4", text)
	}
	*x = seedShard{i, n}
	return nil
}

// String is the inverse; "" for the whole range.
func (x seedShard) String() string {
	if x.n == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", x.i, x.n)
}

// of returns the shard's first seed, how many it has, and the distance between them, of a range.
func (x seedShard) of(from, seeds uint64) (first, count, stride uint64) {
	if x.n == 0 {
		return from, seeds, 1
	}
	skip := (x.i + x.n - from%x.n) % x.n
	if skip >= seeds {
		return from, 0, x.n
	}
	return from + skip, (seeds - skip + x.n - 1) / x.n, x.n
}
