package varve

import (
	"errors"
	"testing"

	"varve/core"
)

func TestTierMap(t *testing.T) {
	cold := func(start, end int64) TierSpan {
		return TierSpan{Tier: core.TierCold, Label: "S3", Start: start, End: end}
	}
	hot := func(start, end int64) TierSpan { return TierSpan{Label: "WAL", Start: start, End: end} }
	for name, c := range map[string]struct {
		m    TierMap
		want string
	}{
		"to scale": {TierMap{Name: "orders/0", Tiers: []TierSpan{cold(0, 4000), {Label: "Valkey", Start: 3000, End: 5000}, hot(4000, 5000)}, Committed: 5000}, `` +
			"orders/0   S3      [0 ─────────────────────────── 4000)\n" +
			"           Valkey                             [3000 ────── 5000)\n" +
			"           WAL                                     [4000 ─ 5000)   committed 5000\n"},
		"short at the front": {TierMap{Name: "x", Tiers: []TierSpan{cold(0, 1), hot(1, 1_000_000)}, Committed: 1_000_000}, `` +
			"x   S3   [0 ─ 1)\n" +
			"    WAL  [1 ───────────────────────────────── 1000000)   committed 1000000\n"},
		"short at the end": {TierMap{Name: "x", Tiers: []TierSpan{cold(5, 1_000_000), hot(999_999, 1_000_000)}, Committed: 1_000_000}, `` +
			"x   S3   [5 ───────────────────────────────── 1000000)\n" +
			"    WAL                             [999999 ─ 1000000)   committed 1000000\n"},
		"nothing": {TierMap{Name: "x", Tiers: []TierSpan{hot(0, 0)}}, "x   WAL  nothing                                         committed 0\n"},
		"down": {TierMap{Name: "x", Tiers: []TierSpan{{Label: "S3", Down: errors.New("?")}, hot(10, 20)}, Committed: 20}, `` +
			"x   S3   does not answer\n" +
			"    WAL  [10 ───────────────────────────────────── 20)   committed 20\n"},
	} {
		if got := c.m.String(); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
