package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// inputBytesMax is far above what any of the commands prints.
const inputBytesMax = 64 << 20

// Overview is what other commands found. A part that was not given is nil, and the page says so.
type Overview struct {
	Run     *RunFigures
	Mutants Mutants
	Bound   *Bound
}

// RunFigures is what `varve-sim run --json` printed, as far as the page shows it.
type RunFigures struct {
	Seeds        uint64            `json:"seeds"`
	From         uint64            `json:"from"`
	PerCore      *float64          `json:"seeds_per_second_per_core"`
	Events       uint64            `json:"events"`
	Workers      int               `json:"workers"`
	Seconds      float64           `json:"seconds"`
	Violations   uint64            `json:"violations"`
	ByCheck      map[string]uint64 `json:"violations_by_check"`
	Refused      uint64            `json:"refused"`
	Hash         string            `json:"hash"`
	Marks        map[string]int64  `json:"marks"`
	MarksMissing []string          `json:"marks_missing"`
	First        *struct {
		Seed     uint64 `json:"seed"`
		Property string `json:"property"`
		Text     string `json:"text"`
		Replay   string `json:"replay"`
	} `json:"first_violation"`
}

// ReadRun reads the file that `varve-sim run --json` printed.
func ReadRun(name string) (*RunFigures, error) {
	r := new(RunFigures)
	if err := readJSON(name, "varve-sim run --json", r); err != nil {
		return nil, err
	}
	if r.Seeds == 0 || r.Marks == nil {
		return nil, fmt.Errorf("%s: expected \"seeds\" above 0 and \"marks\", found %d and %d marks; make it with: varve-sim run --json",
			name, r.Seeds, len(r.Marks))
	}
	return r, nil
}

// Speed is seeds per second of CPU time in words.
func (r *RunFigures) Speed() string {
	if r.PerCore == nil {
		return "not given"
	}
	return whole(*r.PerCore) + " seeds/s/core"
}

// readJSON reads a file into a value. Fields that the page does not know are for others.
func readJSON(name, command string, to any) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	b, err := io.ReadAll(io.LimitReader(f, inputBytesMax+1))
	switch {
	case err != nil:
		return err
	case len(b) > inputBytesMax:
		return fmt.Errorf("%s: expected at most %d bytes, found more", name, inputBytesMax)
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s: expected the JSON that %s prints: %w", name, command, err)
	}
	return nil
}

// markGroup is the marks of one place.
type markGroup struct {
	Place, Words string
	Marks        []markRow
	Reached      int
}

// markRow is one mark. Share is the length of its bar in percent, by the logarithm of its count.
type markRow struct {
	Name    string
	Runs    int64
	Share   int
	Missing bool
}

// Groups lists the marks by place, the rarest first.
func (r *RunFigures) Groups() []markGroup {
	most := int64(2)
	for _, n := range r.Marks {
		most = max(most, n)
	}
	var groups []markGroup
	for _, place := range []string{"disk", "core", "sim"} {
		g := markGroup{Place: place, Words: markWords[place]}
		for name, n := range r.Marks {
			if short, ok := strings.CutPrefix(name, place+" "); ok {
				share := int(100 * math.Log(float64(max(1, n))+1) / math.Log(float64(most)+1))
				g.Marks = append(g.Marks, markRow{Name: short, Runs: n, Share: max(1, min(100, share))})
				g.Reached++
			}
		}
		for _, name := range r.MarksMissing {
			if short, ok := strings.CutPrefix(name, place+" "); ok {
				g.Marks = append(g.Marks, markRow{Name: short, Missing: true})
			}
		}
		slices.SortFunc(g.Marks, func(a, b markRow) int {
			return cmp.Or(cmp.Compare(a.Runs, b.Runs), cmp.Compare(a.Name, b.Name))
		})
		groups = append(groups, g)
	}
	return groups
}

// group writes a number with its digits in threes.
func group(n any) string {
	s := fmt.Sprint(n)
	head, tail, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(head, "-") {
		sign, head = "-", head[1:]
	}
	for i := len(head) - 3; i > 0; i -= 3 {
		head = head[:i] + "\u202f" + head[i:]
	}
	if tail != "" {
		head += "." + tail
	}
	return sign + head
}

// whole writes a number without its fraction.
func whole(f float64) string { return group(strconv.FormatFloat(math.Round(f), 'f', 0, 64)) }
