package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"varve"
)

type readCommand struct {
	Dir    string `required:"" placeholder:"D" help:"Directory of the log."`
	From   *int64 `placeholder:"OFFSET" help:"First offset; default: the first there is."`
	Max    int64  `placeholder:"N" default:"-1" help:"At most so many records; -1: all."`
	Follow bool   `help:"Wait for more."`
	JSON   bool   `name:"json" help:"Print JSON lines: offset, epoch, time, key, value, headers."`

	tierFlags
}

// Validate checks ranges.
func (c *readCommand) Validate() error {
	switch {
	case c.From != nil && *c.From < 0:
		return fmt.Errorf("--from %d: want 0 or more", *c.From)
	case c.Max < -1:
		return fmt.Errorf("--max %d: want 0 or more, or -1 for all", c.Max)
	}
	return c.tierFlags.Validate()
}

// followPause is how often a follower looks again. It reads files only, so it has to look.
const followPause = 250 * time.Millisecond

// Run reads. Damage ends it after the good part before it.
func (c *readCommand) Run(ctx context.Context, s *streams) error {
	t, err := c.openTiers(ctx, s, c.Dir, looks)
	if err != nil {
		return err
	}
	defer t.close()
	o := t.inspect(s)
	x, err := varve.Inspect(ctx, c.Dir, o)
	if err != nil {
		return err
	}
	p := varve.Position{Offset: x.Start}
	if c.From != nil {
		p.Offset = *c.From
	}
	if err := t.silent(x); err != nil && (x.ColdDown == nil || p.Offset >= x.View.HotStart) { // else it is the error
		s.note("varve: warning: %s; what it alone holds is not shown", oneLine(err))
	}
	if p.Offset > x.End && !c.Follow {
		return fmt.Errorf("offset %d is behind the end of the log, %d", p.Offset, x.End)
	}
	left, unproven := c.Max, int64(0)
	for {
		began := time.Now()
		err := c.pass(ctx, s.out, x, &p, &left, &unproven)
		if tier := (*varve.TierError)(nil); errors.As(err, &tier) && x.ColdDown != nil {
			err = fmt.Errorf("%w: %w; on this disk: --from %d", err, x.ColdDown, x.View.HotStart)
		}
		if err == nil && left != 0 && (!c.Follow || !x.Running) { // a running writer knows better than a look beside it
			err = x.Refused
		}
		if err == nil && c.Follow && left != 0 {
			err = s.out.Flush()
		}
		if err != nil || !c.Follow || left == 0 {
			if unproven > 0 {
				s.note("%d records above evidence (offset %d): recovery would keep them, a power loss may not", unproven, x.Proven)
			}
			if c.Follow && errors.Is(err, context.Canceled) {
				return nil // how following ends
			}
			return readOn(x, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(followPause, 4*time.Since(began))):
		}
		if x, err = varve.Inspect(ctx, c.Dir, o); err != nil {
			return err
		}
	}
}

// readOn says where to go on behind damage, where that is known: at the end of the file or object at the latest.
func readOn(x *varve.Inspection, err error) error {
	var c *varve.CorruptError
	if !errors.As(err, &c) {
		return err
	}
	end := c.End
	for i := range x.View.Extents {
		if e := &x.View.Extents[i]; end == 0 && e.First <= c.Offset && c.Offset < e.End {
			end = e.End
		}
	}
	if c.Offset < end && end < x.End {
		return fmt.Errorf("%w; read on behind it: --from %d", err, end)
	}
	return err
}

// pass prints what an inspection found from p on.
func (c *readCommand) pass(ctx context.Context, w *bufio.Writer, x *varve.Inspection, p *varve.Position, left, unproven *int64) error {
	if *left == 0 {
		return nil
	}
	var line jsonRecord
	for r, err := range recordsOf(ctx, x, *p) {
		if err != nil {
			return err
		}
		proven := r.Offset < x.Proven
		if !proven {
			*unproven++
		}
		if c.JSON {
			err = line.write(w, &r, proven)
		} else if _, err = w.Write(r.Value); err == nil {
			err = w.WriteByte('\n')
		}
		if err != nil {
			return err
		}
		*p = r.Position()
		if *left--; *left == 0 {
			return nil
		}
	}
	return nil
}

// jsonRecord is a record as --json prints it.
type jsonRecord struct {
	Offset      int64        `json:"offset"`
	Epoch       uint64       `json:"epoch"`
	Time        string       `json:"time"`
	Key         *string      `json:"key,omitempty"`
	KeyBase64   *string      `json:"key_base64,omitempty"`
	Value       *string      `json:"value,omitempty"`
	ValueBase64 *string      `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
	Proven      *bool        `json:"proven,omitempty"`
}

type jsonHeader struct {
	Key         *string `json:"key,omitempty"`
	KeyBase64   *string `json:"key_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
}

func (j *jsonRecord) write(w *bufio.Writer, r *varve.Record, proven bool) error {
	*j = jsonRecord{Offset: r.Offset, Epoch: r.Epoch, Time: r.Time.UTC().Format(time.RFC3339Nano), Headers: j.Headers[:0]}
	j.Key, j.KeyBase64 = jsonText(r.Key)
	j.Value, j.ValueBase64 = jsonText(r.Value)
	for _, h := range r.Headers {
		var p jsonHeader
		if p.Key, p.KeyBase64 = jsonText(h.Key); h.Key == nil { // no other than an empty one
			p.Key = new(string)
		}
		p.Value, p.ValueBase64 = jsonText(h.Value)
		j.Headers = append(j.Headers, p)
	}
	if !proven {
		j.Proven = &proven
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(j)
}

// jsonText returns a text as it is, other bytes in base64, and neither for nil.
func jsonText(b []byte) (text, base *string) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		t := string(b)
		return &t, nil
	}
	t := base64.StdEncoding.EncodeToString(b)
	return nil, &t
}
