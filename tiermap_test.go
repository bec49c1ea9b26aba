package varve

import (
	"errors"
	"reflect"
	"testing"

	"varve/core"
	"varve/core/segment"
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
		"holes": {TierMap{Name: "x", Tiers: []TierSpan{{Label: "WAL", Start: 0, End: 1000, Holes: []Span{{First: 500, End: 501}, {First: 900, End: 1000}}}}, Committed: 1000}, `` +
			"x   WAL  [0 ──────────────────×─────────────×××× 1000)   committed 1000\n"},
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

// TestTierHoles: what a tier lacks between its extents, and what is damaged in it, is a hole.
func TestTierHoles(t *testing.T) {
	var s TierSpan
	for _, x := range []core.Extent{
		{First: 0, End: 20, Bytes: 1}, {First: 20, End: 30, Damage: segment.BreakPayload, Bytes: 1}, {First: 35, End: 40, Bytes: 1}, {First: 40, End: 50, Bytes: 1},
	} {
		s.add(&x, 10, x.End)
	}
	want := TierSpan{Start: 10, End: 50, Bytes: 3, Segments: 3, Holes: []Span{{20, 35}}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want %+v", s, want)
	}
}
