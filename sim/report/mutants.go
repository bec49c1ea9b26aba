package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Mutants is what `varve-sim mutants --json` printed, as far as the page shows it.
type Mutants struct {
	List []Mutant `json:"mutants"`
}

// Mutant is one planted bug and what found it.
type Mutant struct {
	Name       string            `json:"name"`
	What       string            `json:"what"`
	Status     string            `json:"status"`
	Seeds      uint64            `json:"seeds"`
	Detections uint64            `json:"detections"`
	FirstSeed  *uint64           `json:"first_seed"`
	Rate       *float64          `json:"rate_per_10000"`
	Low        *float64          `json:"rate_low"`
	High       *float64          `json:"rate_high"`
	Checks     map[string]uint64 `json:"checks"`
	Faults     map[string]uint64 `json:"faults"`
}

// ReadMutants reads the file that `varve-sim mutants --json` printed.
func ReadMutants(name string) (*Mutants, error) {
	m := new(Mutants)
	if err := readJSON(name, "varve-sim mutants --json", m); err != nil {
		return nil, err
	}
	if len(m.List) == 0 {
		return nil, fmt.Errorf("%s: expected a list \"mutants\", found none in it; make it with: varve-sim mutants --json", name)
	}
	return m, nil
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

// Checks is mutants against properties.
func (m *Mutants) Checks() *matrix { return m.matrix(func(x *Mutant) map[string]uint64 { return x.Checks }) }

// Faults is mutants against the faults that struck in the seeds that found them; nil if not given.
func (m *Mutants) Faults() *matrix { return m.matrix(func(x *Mutant) map[string]uint64 { return x.Faults }) }

func (m *Mutants) matrix(of func(*Mutant) map[string]uint64) *matrix {
	t := new(matrix)
	for i := range m.List {
		for name := range of(&m.List[i]) {
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
	for i := range m.List {
		x := &m.List[i]
		row := matrixRow{Name: x.Name, What: x.What}
		for _, c := range t.Columns {
			n := of(x)[c]
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
