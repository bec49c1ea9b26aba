package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"varve/tiers/cold/scrub"
)

// coldFlags name the log that a command of the cold tier works with.
type coldFlags struct {
	Dir string `placeholder:"D" help:"Directory of the log, for its name in the bucket; cold-name says it, too. Default: every log below cold.url."`

	tierFlags
}

// Validate asks for a cold tier.
func (c *coldFlags) Validate() error {
	if err := c.tierFlags.Validate(); err != nil {
		return err
	}
	if !c.cold() {
		return unfit("cold.url", `""`, "the place of the cold tier")
	}
	return nil
}

// nothing says that a log is not in the bucket, though it was asked for by name. That is damage where its
// directory knows better.
func (c *coldFlags) nothing(name string) error {
	if c.Dir != "" && manifestSeen(c.Dir) {
		return fmt.Errorf("%s: nothing of it is below %s, and %s has had records there: %w; check cold.url and cold.name", name, c.ColdURL, c.Dir, errDamaged)
	}
	return fmt.Errorf("%s: there is no log of that name below %s; check cold.url and cold.name", name, c.ColdURL)
}

// logs makes the bucket ready and returns the prefixes of the logs that are meant.
func (c *coldFlags) logs(ctx context.Context, use access) (*coldTier, []string, error) {
	if c.Dir != "" || c.ColdName != "" {
		t, err := c.openCold(ctx, c.Dir, use)
		if err != nil {
			return nil, nil, err
		}
		return t, []string{t.prefix}, t.down
	}
	t, err := c.openBucket(ctx, use)
	if err != nil {
		return nil, nil, err
	}
	all, err := scrub.Logs(ctx, t.bucket)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s holds no log: check cold.url", c.ColdURL)
	}
	if err != nil {
		t.close()
	}
	return t, all, err
}

type scrubCommand struct {
	Repair    bool          `help:"Abort uploads that nobody goes on with, and delete objects that no manifest lists. Nothing else."`
	OlderThan time.Duration `default:"24h" placeholder:"AGE" help:"Delete only objects that were made so long ago."`
	JSON      bool          `name:"json" help:"Print JSON lines, one a log."`

	coldFlags
}

// Validate checks ranges.
func (c *scrubCommand) Validate() error {
	if c.OlderThan < 0 {
		return fmt.Errorf("--older-than %v: want 0 or more", c.OlderThan)
	}
	return c.coldFlags.Validate()
}

// scrubbed is what a scrub found of a log, as JSON has it.
type scrubbed struct {
	Log        string        `json:"log"`
	Sequence   uint64        `json:"manifest_sequence,omitempty"`
	Start      int64         `json:"start"`
	Exported   int64         `json:"exported"`
	Objects    int           `json:"verified_objects"`
	Bytes      int64         `json:"verified_bytes"`
	Unverified *int64        `json:"oldest_unverified_offset"`
	Since      string        `json:"oldest_unverified_time,omitempty"`
	Anomalies  []anomalyLine `json:"anomalies"`
	Repaired   []string      `json:"repaired,omitempty"`
	Verdict    string        `json:"verdict"` // clean, damaged, incomplete
}

type anomalyLine struct {
	Name     string `json:"name"`
	Key      string `json:"key,omitempty"`
	First    int64  `json:"first"`
	End      int64  `json:"end"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Damage   bool   `json:"damage"`
}

// Run looks at each log.
func (c *scrubCommand) Run(ctx context.Context, s *streams) error {
	use := looks
	if c.Repair {
		use = writes
	}
	t, logs, err := c.logs(ctx, use)
	if err != nil {
		return err
	}
	defer t.close()
	var first error
	for _, prefix := range logs {
		if err := c.scrub(ctx, s, t, prefix); err != nil && first == nil {
			first = err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return first
}

func (c *scrubCommand) scrub(ctx context.Context, s *streams, t *coldTier, prefix string) error {
	p := s.progress("verified bytes of "+prefix, 0)
	r, err := scrub.Run(ctx, t.bucket, prefix, func(read, total int64) { p.total = total; p.at(read) })
	p.done()
	name := strings.TrimSuffix(prefix, "/")
	if errors.Is(err, scrub.ErrNothing) {
		return c.nothing(name)
	}
	if err != nil && r.Manifest == nil && r.Objects == 0 && !r.Damaged() { // it was not seen at all
		return fmt.Errorf("%s: %w", name, err)
	}
	x := c.report(r)
	if err == nil && c.Repair && r.Manifest != nil {
		x.Repaired, err = r.Repair(ctx, t.bucket, c.OlderThan)
	}
	switch {
	case r.Damaged():
		x.Verdict = "damaged"
	case err != nil:
		x.Verdict = "incomplete"
	}
	if c.JSON {
		err = errors.Join(err, json.NewEncoder(s.out).Encode(x))
	} else {
		c.print(s, r, x)
	}
	err = errors.Join(err, s.out.Flush())
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case r.Manifest == nil:
		return fmt.Errorf("%s: the manifest is %w; run: varve cold rebuild-manifest", name, errDamaged)
	case r.Damaged():
		return fmt.Errorf("%s: the cold tier is %w; while a local disk holds these records, give the log another cold.name, and accept_loss for one open, to export them again%s", name, errDamaged, onBehind(r))
	}
	return nil
}

// onBehind says how a reader goes on behind the first span that is damaged.
func onBehind(r *scrub.Report) string {
	end := int64(0)
	for i := range r.Anomalies {
		if a := &r.Anomalies[i]; a.Damage && a.End > a.First && (end == 0 || a.End < end) {
			end = a.End
		}
	}
	if end == 0 {
		return ""
	}
	return fmt.Sprintf("; without one they are lost, and log read --from %d goes on behind the first", end)
}

func (c *scrubCommand) report(r *scrub.Report) *scrubbed {
	x := &scrubbed{
		Log: strings.TrimSuffix(r.Prefix, "/"), Objects: r.Objects, Bytes: r.Bytes, Anomalies: []anomalyLine{}, Verdict: "clean",
	}
	if m := r.Manifest; m != nil {
		x.Sequence, x.Start, x.Exported = m.Sequence, m.Start, max(m.Start, m.Exported())
	}
	if r.Unverified >= 0 {
		x.Unverified = &r.Unverified
		if r.Since.UnixNano() != 0 {
			x.Since = r.Since.UTC().Format(time.RFC3339)
		}
	}
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		x.Anomalies = append(x.Anomalies, anomalyLine{a.Name, a.Key, a.First, a.End, a.Expected, a.Found, a.Damage})
	}
	return x
}

func (c *scrubCommand) print(s *streams, r *scrub.Report, x *scrubbed) {
	fmt.Fprintf(s.out, "log         %s/%s\n", strings.TrimSuffix(c.ColdURL, "/"), x.Log)
	if r.Manifest != nil {
		fmt.Fprintf(s.out, "manifest    sequence %d, records [%d, %d)\n", x.Sequence, x.Start, x.Exported)
	}
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		age := ""
		if !a.Created.IsZero() {
			age = ", made " + a.Created.UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(s.out, "%-11s %s%s\n", a.Name, strings.TrimPrefix(a.String(), a.Name+": "), age)
	}
	for _, done := range x.Repaired {
		fmt.Fprintf(s.out, "removed     %s\n", done)
	}
	fmt.Fprintf(s.out, "verified    %d objects, %d bytes\n", x.Objects, x.Bytes)
	switch {
	case x.Unverified == nil:
		fmt.Fprintln(s.out, "unverified  nothing")
	case x.Since == "":
		fmt.Fprintf(s.out, "unverified  from offset %d on\n", *x.Unverified)
	default:
		fmt.Fprintf(s.out, "unverified  from offset %d on, appended by %s\n", *x.Unverified, x.Since)
	}
	fmt.Fprintf(s.out, "verdict     %s\n", x.Verdict)
}

type rebuildCommand struct {
	Apply bool `help:"Write it. Without it, what would be written is printed."`
	Loss  bool `name:"accept-loss" help:"Declare lost what is in no object, between others that are there."`

	coldFlags
}

// Run makes a manifest of the objects.
func (c *rebuildCommand) Run(ctx context.Context, s *streams) error {
	use := looks
	if c.Apply {
		use = writes
	}
	t, logs, err := c.logs(ctx, use)
	if err != nil {
		return err
	}
	defer t.close()
	if len(logs) > 1 {
		return usageError{fmt.Errorf("there are %d logs below %s (%s, ...): say which with --cold-name or --dir", len(logs), c.ColdURL, strings.TrimSuffix(logs[0], "/"))}
	}
	prefix := logs[0]
	name := strings.TrimSuffix(prefix, "/")
	p := s.progress("verified bytes of "+name, 0)
	r, err := scrub.Rebuild(ctx, t.bucket, prefix, c.Loss, func(read, total int64) { p.total = total; p.at(read) })
	p.done()
	if errors.Is(err, scrub.ErrNothing) {
		return c.nothing(name)
	}
	if r != nil {
		printRebuilt(s, r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !c.Apply {
		fmt.Fprintln(s.out, "nothing was written; do it with --apply")
		return nil
	}
	if err := r.Write(ctx, t.bucket, prefix); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintln(s.out, "written     the manifest; the next open takes it over")
	return nil
}

func printRebuilt(s *streams, r *scrub.Rebuilt) {
	fmt.Fprintf(s.out, "damage      the manifest: %s\n", r.Why)
	for _, u := range r.Unused {
		fmt.Fprintf(s.out, "leave out   %s\n", u)
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(s.out, "lost        %s\n", g)
	}
	m := r.Manifest
	if m == nil {
		return
	}
	fmt.Fprintf(s.out, "manifest    of log %x: records [%d, %d) in %d objects; what was trimmed within the first one comes back\n", m.LogID[:], m.Start, m.Exported(), r.Objects)
	if len(r.Pages) > 0 {
		fmt.Fprintf(s.out, "pages       %d, for the older ones\n", len(r.Pages))
	}
	for _, l := range m.Lineage {
		fmt.Fprintf(s.out, "epoch       %d owns offsets from %d on\n", l.Epoch, l.First)
	}
}
