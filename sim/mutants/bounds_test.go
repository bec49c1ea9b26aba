package mutants

import (
	"math"
	"testing"
)

// atMost is the chance of at most k hits in n trials, summed up.
func atMost(k, n uint64, p float64) float64 {
	sum := 0.0
	for i := range k + 1 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

// At each bound, what was seen or what is further out has a chance of 2.5 %.
func TestBounds(t *testing.T) {
	const tail = 0.025
	near := func(what string, hits, seeds uint64, got float64) {
		t.Helper()
		if math.Abs(got-tail) > 1e-6 {
			t.Errorf("%d of %d: %s: chance %v, want %v", hits, seeds, what, got, tail)
		}
	}
	for _, x := range []struct{ hits, seeds uint64 }{{1, 2}, {1, 1_000_000}, {5, 10}, {20, 30}, {20, 1000}, {20, 1_000_000}, {19, 20}} {
		low, high := Bounds(x.hits, x.seeds, false)
		near("low", x.hits, x.seeds, 1-atMost(x.hits-1, x.seeds, low))
		near("high", x.hits, x.seeds, atMost(x.hits, x.seeds, high))
		low2, high2 := Bounds(x.hits, x.seeds, true)
		near("high, ended by a hit", x.hits, x.seeds, atMost(x.hits-1, x.seeds-1, high2))
		if rate := float64(x.hits) / float64(x.seeds); low2 != low || high2 > high || low > rate || rate > high2 {
			t.Errorf("%d of %d: %v to %v, ended by a hit %v to %v", x.hits, x.seeds, low, high, low2, high2)
		}
	}
	// None: the rule of three, in exact form. All: its mirror image.
	if low, high := Bounds(0, 1000, false); low != 0 || math.Abs(high-(1-math.Pow(tail, 1.0/1000))) > 1e-9 {
		t.Errorf("0 of 1000: %v to %v", low, high)
	}
	if low, high := Bounds(20, 20, true); high != 1 || math.Abs(low-math.Pow(tail, 1.0/20)) > 1e-9 {
		t.Errorf("20 of 20: %v to %v", low, high)
	}
}
