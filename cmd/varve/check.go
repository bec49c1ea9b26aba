package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"varve"
	"varve/core"
	"varve/core/manifest"
	"varve/core/segment"
)

type checkCommand struct {
	Dir       string `required:"" placeholder:"D" help:"Directory of the log."`
	Deep      bool   `help:"Verify every byte, also where a footer vouches for a file."`
	Generated bool   `help:"Verify that every record is a generated one, as log append --count makes them."`
	JSON      bool   `name:"json" help:"Print JSON."`

	tierFlags
}

// Run prints the recovery plan.
func (c *checkCommand) Run(ctx context.Context, s *streams) error {
	t, err := c.openTiers(ctx, s, c.Dir, looks)
	if err != nil {
		return err
	}
	defer t.close()
	o := t.inspect(s)
	o.Deep = c.Deep
	x, err := varve.Inspect(ctx, c.Dir, o)
	if err != nil {
		return err
	}
	r := report(c.Dir, x)
	if t.bucket != nil {
		r.Cold = reportCold(t.place, x)
	}
	if t.warm.place != "" {
		r.Warm = reportWarm(t, x)
	}
	damage := x.Refused
	if c.Deep || c.Generated {
		if err := c.readAll(ctx, s, x, r); err != nil {
			if !damaged(err) {
				return err
			}
			if damage == nil {
				damage = err
			}
		}
	}
	switch {
	case damage != nil || damaged(t.silent(x)):
		r.Verdict = "damaged"
	case t.silent(x) != nil:
		r.Verdict = "incomplete"
	}
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		r.print(s.out)
	}
	if err != nil {
		return err
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	if damage == nil {
		return t.silent(x)
	}
	return nextStep{damage, "what a repair would give up: varve log repair"}
}

// readAll reads every record that can be served, past damage.
func (c *checkCommand) readAll(ctx context.Context, s *streams, x *varve.Inspection, r *checkReport) error {
	p := s.progress("verified records", x.End-x.Start)
	defer p.done()
	g := generatedCheck{}
	r.Deep = &deepReport{}
	var first error
	at := varve.Position{Offset: x.Start}
	if x.ColdDown != nil {
		at.Offset = max(x.Start, x.View.HotStart)
	}
	for at.Offset < x.End {
		for rec, err := range recordsOf(ctx, x, at) {
			if err != nil {
				var trimmed *varve.TrimmedError
				if errors.As(err, &trimmed) && trimmed.Start > at.Offset { // by a writer, meanwhile
					at = varve.Position{Offset: trimmed.Start}
					break
				}
				next, ok := behindDamage(err)
				if tier := (*varve.TierError)(nil); errors.As(err, &tier) && tier.Tier == core.TierWarm { // verified as it was read
					at = varve.Position{Offset: behindWarm(x, tier.Offset)}
					break
				}
				if !ok {
					return err
				}
				if first == nil && !declaredLost(err) {
					first = err
				}
				at = varve.Position{Offset: max(next, at.Offset+1)}
				break
			}
			if c.Generated && first == nil {
				if err := g.take(&rec); err != nil {
					first = err
				}
			}
			r.Deep.Records++
			r.Deep.Bytes += int64(len(rec.Key) + len(rec.Value))
			at = rec.Position()
			p.at(at.Offset - x.Start)
		}
	}
	if c.Generated {
		r.Deep.Generated = g.records
	}
	return first
}

// behindWarm returns where what the warm tier alone holds ends.
func behindWarm(x *varve.Inspection, o int64) int64 {
	for i := range x.WarmAlone {
		if e := &x.WarmAlone[i]; e.First <= o && o < e.End {
			o = e.End
		}
	}
	return o
}

// behindDamage returns where to go on behind damage.
func behindDamage(err error) (next int64, ok bool) {
	var c *varve.CorruptError
	if !asCorrupt(err, &c) {
		return 0, false
	}
	return max(c.End, c.Offset+1), true
}

// generatedCheck verifies generated records.
type generatedCheck struct {
	records int64
	scratch []byte
}

func (g *generatedCheck) take(r *varve.Record) error {
	_, scratch, err := generated(r.Value, g.scratch)
	g.scratch = scratch
	if err != nil {
		return fmt.Errorf("offset %d: %w: %w", r.Offset, err, errDamaged)
	}
	g.records++
	return nil
}

// checkReport is a plan as check prints it.
type checkReport struct {
	Dir      string         `json:"dir"`
	LogID    string         `json:"log_id"`
	Epoch    uint32         `json:"next_epoch"`
	Running  bool           `json:"writer_running"`
	Start    int64          `json:"start"`
	HotStart int64          `json:"hot_start"`
	Proven   int64          `json:"proven"`
	End      int64          `json:"end"`
	Files    []checkFile    `json:"files"`
	Torn     *checkTorn     `json:"torn,omitempty"`
	Rescues  []checkRescue  `json:"rescues,omitempty"`
	Damage   []checkDamage  `json:"damage,omitempty"`
	Lost     []checkLost    `json:"lost,omitempty"` // given up by a repair
	Unknown  []string       `json:"unknown_files,omitempty"`
	Slots    []string       `json:"super_slots,omitempty"` // what is wrong with one of the superblock's two copies
	NoSpare  bool           `json:"spare_missing,omitempty"`
	Lineage  []checkLineage `json:"lineage"`
	Cold     *checkCold     `json:"cold,omitempty"`
	Warm     *checkWarm     `json:"warm,omitempty"`
	Deep     *deepReport    `json:"verified,omitempty"`
	Verdict  string         `json:"verdict"` // clean, damaged, incomplete (a tier does not answer)
}

// checkCold is what the cold tier says that it holds.
type checkCold struct {
	Place    string        `json:"place"`
	Error    string        `json:"error,omitempty"` // it does not answer, or cannot be read
	Exported *int64        `json:"exported"`        // null: neither
	Objects  []checkObject `json:"objects"`
	state    string
}

// checkWarm is what the warm tier holds.
type checkWarm struct {
	Place string      `json:"place"`
	Error string      `json:"error,omitempty"` // it does not answer
	Start int64       `json:"start"`
	End   int64       `json:"end"`
	Bytes int64       `json:"bytes"`
	Alone []checkSpan `json:"alone"` // what nothing else holds
}

type checkSpan struct {
	First int64 `json:"first"`
	End   int64 `json:"end"`
}

type checkObject struct {
	Name  string `json:"name,omitempty"` // none where a repair gave the records up
	First int64  `json:"first"`
	End   int64  `json:"end"`
	Bytes int64  `json:"bytes"`
}

type checkFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	First int64  `json:"first"`
	End   int64  `json:"end"`
	Index string `json:"index"` // footer, sidecar, none
	Fate  string `json:"fate"`
	Why   string `json:"why,omitempty"`
}

type checkTorn struct {
	Name  string `json:"name"`
	Pos   int64  `json:"position"`
	Bytes int64  `json:"bytes"`
}

type checkRescue struct {
	Name  string `json:"name"`
	Epoch uint32 `json:"epoch"`
	First int64  `json:"first"`
	End   int64  `json:"end"`
}

type checkDamage struct {
	Name     string `json:"name"`
	Pos      int64  `json:"position"`
	First    int64  `json:"first"`
	End      int64  `json:"end"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
	place    string
}

type checkLost struct {
	Name  string `json:"name"`
	Epoch uint32 `json:"epoch"`
	First int64  `json:"first"`
	End   int64  `json:"end"`
}

type checkLineage struct {
	Epoch uint32 `json:"epoch"`
	First int64  `json:"first"`
}

type deepReport struct {
	Records   int64 `json:"records"`
	Bytes     int64 `json:"bytes"`
	Generated int64 `json:"generated,omitempty"`
}

func report(dir string, x *varve.Inspection) *checkReport {
	p := x.Plan
	r := &checkReport{
		Dir: dir, LogID: hex.EncodeToString(x.View.LogID[:]), Epoch: p.Epoch, Running: x.Running, Start: x.Start,
		HotStart: x.View.HotStart, Proven: x.Proven, End: p.End, Unknown: p.Unknown, Verdict: "clean", Files: []checkFile{},
	}
	r.NoSpare = x.Super.Winner >= 0 && !x.Super.Spare // without a superblock there is more to say than that
	if !x.Running && x.Super.Winner >= 0 {            // a writer may be writing one
		r.Slots = x.Slots()
		for i, present := range x.Super.Present {
			if !present {
				r.Slots = append(r.Slots, fmt.Sprintf("super.%d: it is missing", i))
			}
		}
	}
	for i := range p.Files {
		r.Files = append(r.Files, reportFile(&p.Files[i]))
	}
	if p.Torn {
		r.Torn = &checkTorn{Name: fileName(p, p.TornFile), Pos: p.TornPos, Bytes: p.TornBytes}
	}
	for _, q := range p.Rescues {
		r.Rescues = append(r.Rescues, checkRescue{Name: fileName(p, q.File), Epoch: q.Epoch, First: q.First, End: q.End})
	}
	damage := p.Damage
	if c := (*varve.CorruptError)(nil); len(damage) == 0 && asCorrupt(x.Refused, &c) {
		damage = []core.CorruptError{*c}
	}
	for i := range damage {
		d := &damage[i]
		r.Damage = append(r.Damage, checkDamage{
			place: d.Place(), Name: d.Name(), Pos: d.Pos, First: d.Offset, End: d.End,
			Expected: d.Expected, Found: d.Found,
		})
	}
	for i := range x.View.Extents {
		if e := &x.View.Extents[i]; e.Lost {
			r.Lost = append(r.Lost, checkLost{Name: segment.Name(e.Base, e.Segment), Epoch: e.Epoch, First: e.First, End: e.End})
		}
	}
	for _, e := range x.View.Lineage {
		r.Lineage = append(r.Lineage, checkLineage{Epoch: e.Epoch, First: e.First})
	}
	return r
}

func reportCold(place string, x *varve.Inspection) *checkCold {
	c := &checkCold{Place: place, Objects: []checkObject{}}
	if x.ColdDown != nil {
		c.Error, c.state = oneLine(x.ColdDown), downText(x.ColdDown)
	} else {
		c.Exported = &x.Exported
	}
	for i := range x.Cold {
		e := &x.Cold[i]
		o := checkObject{First: e.First, End: e.End, Bytes: e.Bytes}
		if !e.Lost {
			o.Name = objectName(e)
		}
		c.Objects = append(c.Objects, o)
	}
	return c
}

func reportWarm(t *logTiers, x *varve.Inspection) *checkWarm {
	w := &checkWarm{Place: t.warm.place, Start: x.WarmFrom, End: max(x.WarmFrom, x.WarmEnd), Bytes: x.WarmBytes, Alone: []checkSpan{}}
	if err := t.silent(x); err != nil {
		w.Error = oneLine(err)
	}
	for i := range x.WarmAlone {
		w.Alone = append(w.Alone, checkSpan{x.WarmAlone[i].First, x.WarmAlone[i].End})
	}
	return w
}

// objectName returns the key of an object below the prefix of its log.
func objectName(e *core.Extent) string {
	s := manifest.Segment{Base: e.Base, End: e.Until, Epoch: e.Epoch, Attempt: e.Attempt}
	return string(s.AppendKey(nil))
}

// declaredLost reports whether damage is a span that a repair gave up.
func declaredLost(err error) bool {
	var c *varve.CorruptError
	return errors.As(err, &c) && c.Lost
}

func fileName(p *core.Plan, i int) string {
	if i < 0 {
		return "the warm tier"
	}
	return segment.Name(p.Files[i].Entry.Base, p.Files[i].Entry.ID)
}

func reportFile(f *core.PlanFile) checkFile {
	c := checkFile{
		Name: segment.Name(f.Entry.Base, f.Entry.ID), Bytes: f.Entry.Bytes, First: f.Entry.Base, End: f.Entry.Base,
		Index: "none", Fate: f.Fate.String(), Why: f.Why,
	}
	if n := len(f.Info.Runs); n > 0 {
		c.First, c.End = f.Info.Runs[0].First, f.Info.Runs[n-1].End
	}
	if h := &f.Info.Header; h.Kind == segment.Lost {
		c.End = h.End
	}
	switch {
	case f.Info.Sealed:
		c.Index = "footer"
	case f.Info.Sidecar:
		c.Index = "sidecar"
	}
	if c.Index != "none" && len(f.Info.Runs) == 0 {
		c.First, c.End = f.Info.Footer.Base, f.Info.Footer.End
	}
	return c
}

func (r *checkReport) print(w *bufio.Writer) {
	fmt.Fprintf(w, "log       %s in %s, next epoch %d", r.LogID, r.Dir, r.Epoch)
	if r.Running {
		fmt.Fprint(w, ", a writer is running")
	}
	fmt.Fprintf(w, "\nrecords   [%d, %d), proven up to %d\n", r.Start, r.End, r.Proven)
	for _, f := range r.Files {
		fmt.Fprintf(w, "file      %s  [%d, %d)  %d bytes, index %s: %s", f.Name, f.First, f.End, f.Bytes, f.Index, f.Fate)
		if f.Why != "" {
			fmt.Fprintf(w, " (%s)", f.Why)
		}
		fmt.Fprintln(w)
	}
	if t := r.Torn; t != nil {
		fmt.Fprintf(w, "torn      %s ends at byte %d; %d bytes behind it are void\n", t.Name, t.Pos, t.Bytes)
	}
	for _, q := range r.Rescues {
		fmt.Fprintf(w, "rescue    [%d, %d) of epoch %d from %s into a file of its own\n", q.First, q.End, q.Epoch, q.Name)
	}
	for _, d := range r.Damage {
		fmt.Fprintf(w, "damage    %s, offsets [%d, %d): expected %s, found %s\n", d.place, d.First, d.End, d.Expected, d.Found)
	}
	for _, l := range r.Lost {
		fmt.Fprintf(w, "lost      [%d, %d) of epoch %d: given up by a repair, as %s says\n", l.First, l.End, l.Epoch, l.Name)
	}
	for _, u := range r.Unknown {
		fmt.Fprintf(w, "unknown   %s is none of the log's files and is left alone\n", u)
	}
	for _, slot := range r.Slots {
		fmt.Fprintf(w, "slot      %s; the other copy of the superblock is good, and the next open for appending writes this one anew\n", slot)
	}
	if r.NoSpare {
		fmt.Fprintln(w, "spare     missing: the next open makes it, if there is room; without a free byte that open waits for some, and trims nothing")
	}
	if c := r.Cold; c != nil {
		c.print(w)
	}
	if x := r.Warm; x != nil {
		x.print(w)
	}
	if d := r.Deep; d != nil {
		fmt.Fprintf(w, "verified  %d records, %d bytes", d.Records, d.Bytes)
		if d.Generated > 0 {
			fmt.Fprintf(w, "; %d are generated records with the right content", d.Generated)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "verdict   %s\n", r.Verdict)
}

func (c *checkCold) print(w *bufio.Writer) {
	if c.Error != "" {
		fmt.Fprintf(w, "cold      %s %s: %s\n", c.Place, c.state, c.Error)
		return
	}
	fmt.Fprintf(w, "cold      %s holds what is below offset %d, as its manifest says; varve cold scrub looks at the objects\n", c.Place, *c.Exported)
	for _, o := range c.Objects {
		if o.Name == "" {
			fmt.Fprintf(w, "object    none  [%d, %d): given up by a repair\n", o.First, o.End)
			continue
		}
		fmt.Fprintf(w, "object    %s  [%d, %d)  %d bytes\n", o.Name, o.First, o.End, o.Bytes)
	}
}

func (c *checkWarm) print(w *bufio.Writer) {
	if c.Error != "" {
		fmt.Fprintf(w, "warm      %s: %s\n", c.Place, c.Error)
		return
	}
	fmt.Fprintf(w, "warm      %s holds [%d, %d), %d bytes\n", c.Place, c.Start, c.End, c.Bytes)
	for _, a := range c.Alone {
		fmt.Fprintf(w, "alone     [%d, %d) is in the warm tier alone; an open for appends copies it to the disk (with --verify-all-on-open, where a damaged file should hold it)\n", a.First, a.End)
	}
}
