package mutants

import "math"

// confidence is that of the bounds: each side is missed with half of what remains.
const confidence = 0.95

// Bounds returns an exact confidence interval of 95 % for the chance that a seed detects a bug, when
// hits of seeds did.
//
// If the run went on to a number of seeds that was set before, it is that of Clopper and Pearson for
// a binomial count. If the run ended with its last hit, as one does that stops at a number of hits,
// the count of seeds is what was drawn (negative binomial): the lower bound is the same, the upper
// one has one miss less to go by.
func Bounds(hits, seeds uint64, endedByHit bool) (low, high float64) {
	k, n := float64(hits), float64(seeds)
	tail := (1 - confidence) / 2
	low, high = 0, 1
	if hits > 0 {
		low = betaQuantile(tail, k, n-k+1)
	}
	switch {
	case hits >= seeds:
	case endedByHit:
		high = betaQuantile(1-tail, k, n-k)
	default:
		high = betaQuantile(1-tail, k+1, n-k)
	}
	return low, high
}

// betaQuantile returns x with betaCDF(x, a, b) = p, by bisection.
func betaQuantile(p, a, b float64) float64 {
	low, high := 0.0, 1.0
	for range 200 {
		if mid := low + (high-low)/2; betaCDF(mid, a, b) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// betaCDF is the regularised incomplete beta function I_x(a, b).
func betaCDF(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2): // where the fraction converges slowly
		return 1 - betaCDF(1-x, b, a)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + a*math.Log(x) + b*math.Log1p(-x))
	return front * betaFraction(x, a, b) / a
}

// betaFraction is the continued fraction of the incomplete beta function (Abramowitz and Stegun
// 26.5.8), evaluated by the modified method of Lentz.
func betaFraction(x, a, b float64) float64 {
	const tiny, enough = 1e-300, 1e-14
	away := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/away(1-(a+b)*x/(a+1))
	f := d
	for i := 1; i <= 10_000; i++ {
		m := float64(i)
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d, c = 1/away(1+even*d), away(1+even/c)
		f *= c * d
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d, c = 1/away(1+odd*d), away(1+odd/c)
		step := c * d
		f *= step
		if math.Abs(step-1) < enough {
			break
		}
	}
	return f
}
