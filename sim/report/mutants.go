package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mutants is what `varve-sim mutants --json` printed, as far as the page shows it.
type Mutants []Mutant

// Mutant is one planted bug and what found it.
type Mutant struct {
	Name       string            `json:"name"`
	What       string            `json:"what"`
	Equivalent bool              `json:"equivalent"`
	Seeds      uint64            `json:"seeds"`
	First      *uint64           `json:"first_seed"`
	Detections uint64            `json:"detections"`
	Rate       *float64          `json:"rate"` // detections of 10,000 seeds
	Low        *float64          `json:"rate_low"`
	High       *float64          `json:"rate_high"`
	Checks     map[string]uint64 `json:"checks"`
	Marks      map[string]uint64 `json:"marks"` // detections in which each mark was reached
	Failure    string            `json:"failure"`
}

// Per10000 is the rate in words.
func (m *Mutant) Per10000() string { return optional(m.Rate) }

// Bounds are its bounds in words.
func (m *Mutant) Bounds() string {
	if m.Low == nil || m.High == nil {
		return "–"
	}
	return optional(m.Low) + " – " + optional(m.High)
}

// FirstSeed is the first seed that found it in words.
func (m *Mutant) FirstSeed() string {
	if m.First == nil {
		return "–"
	}
	return group(*m.First)
}

// optional writes a figure with three digits, and nothing as a dash.
func optional(f *float64) string {
	switch {
	case f == nil:
		return "–"
	case *f >= 100:
		return whole(*f)
	}
	return strconv.FormatFloat(*f, 'g', 3, 64)
}

// Outcome says whether the bug counts as found.
func (m *Mutant) Outcome() string {
	switch {
	case m.Failure != "":
		return m.Failure
	case m.Equivalent:
		return "equivalent, not found"
	case m.Detections > 0:
		return "found"
	}
	return "not found"
}

// ReadMutants reads the file that `varve-sim mutants --json` printed.
func ReadMutants(name string) (Mutants, error) {
	var m Mutants
	if err := readJSON(name, "varve-sim mutants --json", &m); err != nil {
		return nil, err
	}
	if len(m) == 0 || m[0].Name == "" {
		return nil, fmt.Errorf("%s: expected a list of planted bugs, each with its \"name\", found none; make it with: varve-sim mutants --json", name)
	}
	return m, nil
}

// Tally says how many count as found.
func (m Mutants) Tally() string {
	found, equivalent := 0, 0
	for i := range m {
		switch {
		case m[i].Failure != "":
		case m[i].Equivalent:
			equivalent++
		case m[i].Detections > 0:
			found++
		}
	}
	text := fmt.Sprintf("%d of %d found", found, len(m)-equivalent)
	if equivalent > 0 {
		text += fmt.Sprintf(", %d proven equivalent", equivalent)
	}
	return text
}

// matrix is mutants against what they met: properties that caught them, or faults that struck.
type matrix struct {
	Columns []string
	Rows    []matrixRow
}

type matrixRow struct {
	Name, What string
	Cells      []cell
}

// cell is one figure; Heat is 0 to 4, by its share of the row's detections.
type cell struct {
	N    uint64
	Heat int
}

// Checks is mutants against the properties that caught them.
func (m Mutants) Checks() *matrix {
	return m.matrix(func(x *Mutant) map[string]uint64 { return x.Checks })
}

// faultMarks are the marks of the world that are faults; all of the disk are.
var faultMarks = []string{
	"sim kill", "sim power", "sim pressure", "sim crash-in-recovery", "sim crash-in-recovery-twice", "sim slow", "sim hang",
	"sim second-process", "sim clock-forward", "sim clock-back", "sim clock-freeze", "sim clock-skew", "sim config-changed",
	"sim pause", "sim stale-completion",
}

// Faults is mutants against the faults that struck in the seeds that found them; nil if not given.
func (m Mutants) Faults() *matrix {
	return m.matrix(func(x *Mutant) map[string]uint64 {
		faults := map[string]uint64{}
		for name, n := range x.Marks {
			place, short, _ := strings.Cut(name, " ")
			if place == "disk" || slices.Contains(faultMarks, name) {
				faults[short] = n
			}
		}
		return faults
	})
}

func (m Mutants) matrix(of func(*Mutant) map[string]uint64) *matrix {
	t := new(matrix)
	for i := range m {
		for name := range of(&m[i]) { // sorted below
			if !slices.Contains(t.Columns, name) {
				t.Columns = append(t.Columns, name)
			}
		}
	}
	if len(t.Columns) == 0 {
		return nil
	}
	slices.SortFunc(t.Columns, func(a, b string) int { // K9 before K10
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
	})
	for i := range m {
		x := &m[i]
		row := matrixRow{Name: x.Name, What: x.What}
		counts := of(x)
		for _, c := range t.Columns {
			n := counts[c]
			heat := 0
			if n > 0 {
				heat = min(4, 1+int(3*n/max(1, x.Detections)))
			}
			row.Cells = append(row.Cells, cell{n, heat})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// number returns the first number in an id, or one behind all others.
func number(id string) int {
	n, digits := 0, false
	for _, c := range id {
		if c >= '0' && c <= '9' {
			n, digits = min(1<<20, 10*n+int(c-'0')), true
		} else if digits {
			break
		}
	}
	if !digits {
		return 1 << 21
	}
	return n
}
