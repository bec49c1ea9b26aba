package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Bound is what `varve-sim exhaust --json` printed: what was covered, in its own words and figures.
type Bound struct {
	fields map[string]json.RawMessage
}

// UnmarshalJSON keeps every field.
func (b *Bound) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &b.fields) }

// ReadBound reads the file that `varve-sim exhaust --json` printed.
func ReadBound(name string) (*Bound, error) {
	b := new(Bound)
	if err := readJSON(name, "varve-sim exhaust --json", b); err != nil {
		return nil, err
	}
	if len(b.Facts()) == 0 {
		return nil, fmt.Errorf("%s: expected figures, found none; make it with: varve-sim exhaust --json", name)
	}
	return b, nil
}

// fact is one figure with its name in words.
type fact struct{ Name, Value string }

// Facts lists the figures and short texts, by name.
func (b *Bound) Facts() []fact {
	var all []fact
	for name, raw := range b.fields {
		words := strings.ReplaceAll(name, "_", " ")
		var list []string
		var text string
		var number json.Number
		switch {
		case json.Unmarshal(raw, &number) == nil && number != "":
			all = append(all, fact{words, group(number)})
		case json.Unmarshal(raw, &text) == nil && text != "":
			all = append(all, fact{words, text})
		case json.Unmarshal(raw, &list) == nil && len(list) > 0:
			all = append(all, fact{words, strings.Join(list, ", ")})
		case string(raw) == "true" || string(raw) == "false":
			all = append(all, fact{words, map[string]string{"true": "yes", "false": "no"}[string(raw)]})
		}
	}
	slices.SortFunc(all, func(a, b fact) int { return strings.Compare(a.Name, b.Name) })
	return all
}
