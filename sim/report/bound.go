package report

import (
	"fmt"
	"strings"
)

// Bound is what `varve-sim exhaust --json` printed, as far as the page shows it. Of pairs the first
// counts crashes of sequences, the second crashes of the recoveries after them.
type Bound struct {
	Ops       int      `json:"ops"`
	Alphabet  []string `json:"operations"`
	Configs   []string `json:"configurations"`
	Whole     bool     `json:"whole"`
	Sequences int64    `json:"sequences"`
	Done      int64    `json:"sequences_done"`
	Points    []int64  `json:"crash_points"`
	Crashes   []int64  `json:"crashes"`
	Sampled   []int64  `json:"sampled_points"`
	ImagesMax int64    `json:"images_max"`
	States    []int64  `json:"states"`
	Hash      string   `json:"hash"`
	Workers   int      `json:"workers"`
	Seconds   float64  `json:"seconds"`
	Found     int64    `json:"violations"`
	First     *struct {
		Property string `json:"property"`
		Text     string `json:"text"`
		Replay   string `json:"replay"`
	} `json:"first_violation"`
}

// ReadBound reads the file that `varve-sim exhaust --json` printed.
func ReadBound(name string) (*Bound, error) {
	b := new(Bound)
	if err := readJSON(name, "varve-sim exhaust --json", b); err != nil {
		return nil, err
	}
	if b.Sequences == 0 || len(b.Alphabet) == 0 {
		return nil, fmt.Errorf("%s: expected \"sequences\" above 0 and \"operations\", found %d and %d; make it with: varve-sim exhaust --json",
			name, b.Sequences, len(b.Alphabet))
	}
	return b, nil
}

// Scope says what the search was to cover.
func (b *Bound) Scope() string {
	return fmt.Sprintf("Every sequence of up to %d of %d operations, every crash in it, every crash in the recovery after that.", b.Ops, len(b.Alphabet))
}

// fact is one figure with its name in words.
type fact struct{ Name, Value string }

// Facts are the figures of the search.
func (b *Bound) Facts() []fact {
	covered := group(b.Done) + " of " + group(b.Sequences) + " sequences"
	if b.Whole {
		covered = "whole: all " + group(b.Sequences) + " sequences"
	}
	sampled := pair(b.Sampled)
	if b.ImagesMax > 0 {
		sampled += fmt.Sprintf(", %s images of each", group(b.ImagesMax))
	}
	return []fact{
		{"covered", covered},
		{"operations", strings.Join(b.Alphabet, ", ")},
		{"configurations", given(strings.Join(b.Configs, ", "))},
		{"crash points, in sequences + recoveries", pair(b.Points)},
		{"crashes", pair(b.Crashes)},
		{"different states", pair(b.States)},
		{"points that were sampled", sampled},
		{"violations", group(b.Found)},
		{"time", fmt.Sprintf("%s s with %d workers", group(fmt.Sprintf("%.0f", b.Seconds)), b.Workers)},
		{"hash of all states", given(b.Hash)},
	}
}

func pair(p []int64) string {
	if len(p) != 2 {
		return given("")
	}
	return group(p[0]) + " + " + group(p[1])
}

func given(text string) string {
	if text == "" {
		return "not given"
	}
	return text
}
