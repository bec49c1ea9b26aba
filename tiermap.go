package varve

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"varve/core"
	"varve/core/segment"
)

// TierMap says which tier holds which offsets of a log. String draws it to scale.
type TierMap struct {
	Name      string // of the log
	Tiers     []TierSpan
	Committed int64
}

// TierSpan is what one tier holds: [Start, End) but for its holes.
type TierSpan struct {
	Tier     core.Tier
	Label    string // of the row
	Start    int64
	End      int64
	Bytes    int64  // of the files, objects or entries
	Segments int    // none in the warm tier
	Holes    []Span // damaged or missing, in order
	Down     error  // why the tier does not answer, nil if it does; then nothing is known of it
}

// TierMap returns the map of a running log. bucket is how the row of the cold tier is called, such as
// S3.
func (l *Log) TierMap(name, bucket string) TierMap {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := TierMap{Name: name, Committed: l.core.Committed()}
	v := new(core.View)
	l.core.FillView(v)
	if l.cold != nil {
		m.addCold(bucket, l.core.ColdExtents(nil), l.core.Start(), l.core.Stats().ColdError)
	}
	if s := l.core.Stats(); l.warm != nil {
		m.addWarm(s.WarmFrom, s.WarmEnd, s.WarmBytes, s.WarmError)
	}
	m.addHot(v, m.Committed)
	return m
}

// TierMap returns the map of what was found. Beside a running writer it ends with what is proven.
func (x *Inspection) TierMap(name, bucket string) TierMap {
	m := TierMap{Name: name, Committed: x.End}
	if x.cold != nil {
		m.addCold(bucket, x.Cold, x.Start, x.ColdDown)
	}
	if x.options.Warm.Dialer != nil {
		m.addWarm(x.WarmFrom, x.WarmEnd, x.WarmBytes, cmp.Or(x.WarmDown, x.ColdDown))
	}
	m.addHot(x.View, x.End)
	return m
}

// addCold adds the row of the cold tier. Objects below Start are about to be deleted.
func (m *TierMap) addCold(label string, xs []core.Extent, start int64, down error) {
	t := TierSpan{Tier: core.TierCold, Label: label, Start: start, End: start, Down: down}
	for i := range xs {
		t.add(&xs[i], start, xs[i].End)
	}
	m.Tiers = append(m.Tiers, t)
}

// addWarm adds the row of the warm tier.
func (m *TierMap) addWarm(from, end, bytes int64, down error) {
	m.Tiers = append(m.Tiers, TierSpan{Tier: core.TierWarm, Label: "Valkey", Start: from, End: max(from, end), Bytes: bytes, Down: down})
}

// addHot adds the row of the local disk.
func (m *TierMap) addHot(v *core.View, end int64) {
	t := TierSpan{Tier: core.TierHot, Label: "WAL", Start: end, End: end}
	for i := range v.Extents {
		if x := &v.Extents[i]; x.Tier == core.TierHot && x.First < end {
			t.add(x, v.Start, min(x.End, end))
		}
	}
	m.Tiers = append(m.Tiers, t)
}

// add takes in an extent that ends at end, in order. What is damaged, or between it and the one before, is a hole.
func (t *TierSpan) add(x *core.Extent, start, end int64) {
	first := max(x.First, start)
	switch {
	case t.Start >= t.End:
		t.Start = first
	case first > t.End:
		t.hole(t.End, first)
	}
	t.End = max(t.End, end)
	if x.Damage != segment.BreakNone {
		t.hole(first, end)
		return
	}
	t.Bytes += x.Bytes
	t.Segments++
}

func (t *TierSpan) hole(first, end int64) {
	if n := len(t.Holes); n > 0 && t.Holes[n-1].End == first {
		t.Holes[n-1].End = end
		return
	}
	t.Holes = append(t.Holes, Span{First: first, End: end})
}

// mapColumns is how wide the spans of a map are drawn.
const mapColumns = 45

// String draws the map: a row a tier, the oldest records to the left.
func (m *TierMap) String() string {
	low, high, label := m.Committed, m.Committed, 0
	for i := range m.Tiers {
		t := &m.Tiers[i]
		label = max(label, utf8.RuneCountInString(t.Label))
		if t.Start < t.End {
			low, high = min(low, t.Start), max(high, t.End)
		}
	}
	var b strings.Builder
	name := m.Name
	for i := range m.Tiers {
		t := &m.Tiers[i]
		fmt.Fprintf(&b, "%s   %-*s  ", name, label, t.Label)
		name = strings.Repeat(" ", utf8.RuneCountInString(m.Name))
		row := ""
		switch {
		case t.Down != nil:
			row = "does not answer"
			if errors.As(t.Down, new(*RefusedError)) {
				row = "cannot be read"
			}
		case t.Start == t.End:
			row = "nothing"
		default:
			row = t.bar(low, high)
		}
		b.WriteString(row)
		if i == len(m.Tiers)-1 {
			pad := max(0, mapColumns-utf8.RuneCountInString(row))
			fmt.Fprintf(&b, "%*s   committed %d", pad, "", m.Committed)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// bar draws a span, with blanks before it and × for its holes. A span too short for its own numbers grows to the left.
func (t *TierSpan) bar(low, high int64) string {
	from, to := fmt.Sprintf("[%d ", t.Start), fmt.Sprintf(" %d)", t.End)
	scale := func(o int64) int { return int(float64(o-low) / float64(high-low) * mapColumns) }
	left, right := scale(t.Start), scale(t.End)
	least := len(from) + len(to) + 1
	if right-left < least {
		left = max(0, min(left, right-least))
		right = left + least
	}
	body := []rune(strings.Repeat("─", right-left-len(from)-len(to)))
	for _, h := range t.Holes { // each is at least one column wide
		inside := func(o int64) int { return int(float64(o-t.Start) / float64(t.End-t.Start) * float64(len(body))) }
		for i := min(inside(h.First), len(body)-1); i < max(inside(h.End), inside(h.First)+1) && i < len(body); i++ {
			body[i] = '×'
		}
	}
	return strings.Repeat(" ", left) + from + string(body) + to
}
