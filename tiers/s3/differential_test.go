package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"varve/sim/fakebucket"
	"varve/tiers"
	"varve/tiers/dirbucket"
	"varve/tiers/s3"
	"varve/tiers/s3/s3test"
	"varve/tiers/tiertest"
)

// party is one of the buckets that must agree. What a bucket names by itself stands in slots, so that
// a command means the same to all.
type party struct {
	name    string
	b       tiers.Bucket
	tags    []string
	uploads []string
	parts   [][]tiers.Part // by upload
}

// answer is what a command answered, in terms that all parties share.
type answer struct {
	class string
	keys  []string
	sizes []int64
	body  string
	crc   uint32 // 0: not told
}

// classes are the errors of the seam by name.
var classes = []struct {
	err  error
	name string
}{
	{tiers.ErrNotFound, "not found"},
	{tiers.ErrNoUpload, "no upload"},
	{tiers.ErrPrecondition, "precondition"},
	{tiers.ErrConflict, "conflict"},
	{tiers.ErrDenied, "denied"},
	{tiers.ErrInvalid, "invalid"},
	{tiers.ErrThrottled, "throttled"},
	{tiers.ErrCorrupt, "corrupt"},
}

func classOf(err error) string {
	if err == nil {
		return "done"
	}
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "other error"
}

// command is one call. Slots are those of party.
type command struct {
	op     string
	key    string
	after  string
	size   int
	pos    int64
	limit  int
	absent bool
	tag    int // slot; -1: none
	upload int // slot
	number int
	parts  string // of finish: all, none, wrong, missing, first
	id     int    // makes every body different
}

func (c command) String() string {
	type plain command // without this method
	return fmt.Sprintf("%+v", plain(c))
}

// bodyOf returns bytes that no other command sends.
func (c command) bodyOf() []byte {
	head := fmt.Sprintf("%d %s ", c.id, c.op)
	return append([]byte(head), bytes.Repeat([]byte{byte(c.id)}, max(0, c.size-len(head)))...)
}

func (p *party) cond(c command) tiers.Condition {
	cond := tiers.Condition{Absent: c.absent}
	if c.tag >= 0 {
		cond.Tag = p.tags[c.tag]
	}
	return cond
}

// do carries a command out and keeps what it names.
func (p *party) do(ctx context.Context, c command) answer {
	switch c.op {
	case "put":
		o, err := p.b.Put(ctx, c.key, c.bodyOf(), p.cond(c))
		return p.wrote(o, err)
	case "get":
		buf := make([]byte, c.size)
		n, o, err := p.b.Get(ctx, c.key, c.pos, buf)
		a := described(o, err)
		a.body = string(buf[:n])
		return a
	case "head":
		return described(p.b.Head(ctx, c.key))
	case "delete":
		return answer{class: classOf(p.b.Delete(ctx, c.key))}
	case "list":
		list, err := p.b.List(ctx, c.key, c.after, c.limit)
		a := answer{class: classOf(err)}
		for _, o := range list {
			a.keys, a.sizes = append(a.keys, o.Key), append(a.sizes, o.Bytes)
		}
		return a
	case "begin":
		id, err := p.b.Begin(ctx, c.key)
		p.uploads, p.parts = append(p.uploads, id), append(p.parts, nil)
		return answer{class: classOf(err)}
	case "part":
		part, err := p.b.PutPart(ctx, c.key, p.uploads[c.upload], c.number, c.bodyOf())
		if err == nil {
			p.keep(c.upload, part)
		}
		return answer{class: classOf(err), crc: part.CRC}
	case "finish":
		o, err := p.b.Finish(ctx, c.key, p.uploads[c.upload], p.choose(c), p.cond(c))
		return p.wrote(o, err)
	case "abort":
		return answer{class: classOf(p.b.Abort(ctx, c.key, p.uploads[c.upload]))}
	case "uploads":
		list, err := p.b.Uploads(ctx, c.key)
		a := answer{class: classOf(err)}
		for _, u := range list {
			a.keys = append(a.keys, fmt.Sprint(u.Key, " ", slices.Index(p.uploads, u.ID)))
		}
		slices.Sort(a.keys) // uploads of one key have no order
		return a
	}
	panic(c.op)
}

// keep remembers a part in the place of the one it replaced.
func (p *party) keep(upload int, part tiers.Part) {
	list := &p.parts[upload]
	i, ok := slices.BinarySearchFunc(*list, part.Number, func(x tiers.Part, n int) int { return x.Number - n })
	if ok {
		(*list)[i] = part
	} else {
		*list = slices.Insert(*list, i, part)
	}
}

// choose returns the parts that a finish names.
func (p *party) choose(c command) []tiers.Part {
	parts := slices.Clone(p.parts[c.upload])
	switch {
	case c.parts == "none" || len(parts) == 0:
		return nil
	case c.parts == "first":
		return parts[:1]
	case c.parts == "wrong":
		parts[0].Tag = `"00000000000000000000000000000000"`
	case c.parts == "missing":
		parts[len(parts)-1].Number++
	}
	return parts
}

// sound reports whether a finish names parts that are there and make an object.
func (p *party) sound(c command) bool {
	return c.parts != "wrong" && c.parts != "missing" && tiers.CheckParts(p.choose(c), tiers.PartBytesMin) == nil
}

func (p *party) wrote(o tiers.Object, err error) answer {
	p.tags = append(p.tags, o.Tag)
	return described(o, err)
}

func described(o tiers.Object, err error) answer {
	if err != nil {
		return answer{class: classOf(err)}
	}
	a := answer{class: "done", keys: []string{o.Key}, sizes: []int64{o.Bytes}}
	if o.HasCRC {
		a.crc = o.CRC
	}
	return a
}

// differs says what an answer has that another has not; "" if they agree.
func (a answer) differs(x answer) string {
	switch {
	case a.class != x.class:
		return "class"
	case !slices.Equal(a.keys, x.keys):
		return "keys"
	case !slices.Equal(a.sizes, x.sizes):
		return "sizes"
	case a.body != x.body:
		return "body"
	case a.crc != x.crc && a.crc != 0 && x.crc != 0:
		return "CRC"
	}
	return ""
}

func (a answer) String() string {
	return fmt.Sprintf("%s, keys %q, sizes %v, %d bytes with the CRC %08x, CRC %08x", a.class, a.keys, a.sizes, len(a.body),
		crc32.ChecksumIEEE([]byte(a.body)), a.crc)
}

// parties returns an empty bucket of each kind; the simulated one is the first.
func parties(t *testing.T, server *tiertest.S3, run int) []*party {
	t.Helper()
	dir, err := dirbucket.Open(filepath.Join(t.TempDir(), "bucket"), dirbucket.Options{Create: true})
	must(t, err)
	t.Cleanup(func() { must(t, dir.Close()) })
	list := []*party{{name: "fakebucket", b: fakebucket.New()}, {name: "dirbucket", b: dir}}
	for _, fake := range fakes {
		h, err := fake.make("b")
		must(t, err)
		list = append(list, &party{name: fake.name, b: openFake(t, s3.Options{HTTPClient: s3test.Client{Handler: h}})})
	}
	real, err := s3.Open(t.Context(), s3.Options{
		Bucket: server.Bucket, Endpoint: server.Endpoint, AccessKey: server.AccessKey, SecretKey: server.SecretKey, PathStyle: true,
		Region: "us-east-1", Prefix: fmt.Sprintf("differential-%d", run),
	})
	must(t, err)
	return append(list, &party{name: "server", b: real})
}

// play is one run of all parties.
type play struct {
	t       *rapid.T
	parties []*party
	said    []string
	begun   []string // key of each upload
	over    []bool   // the upload was finished or aborted
}

// all lets every party carry a command out and wants one answer of them.
func (x *play) all(c command) answer {
	x.t.Helper()
	c.id = len(x.said)
	x.said = append(x.said, c.String())
	want := x.parties[0].do(x.t.Context(), c)
	for _, p := range x.parties[1:] {
		got := p.do(x.t.Context(), c)
		if c.op == "finish" && want.class == "no upload" && (got.class == "other error" || got.class == "done") {
			// The upload is over, which a server may know only by a look at the object, or answer for as it
			// did before. What it leaves is compared below.
			continue
		}
		if d := got.differs(want); d != "" {
			x.t.Fatalf("%s differs in %s:\n%s\n  %s: %v\n  %s: %v", p.name, d, strings.Join(x.said, "\n"), x.parties[0].name, want, p.name, got)
		}
	}
	return want
}

var differentialKeys = []string{"a", "b/c", "b/d", "segments/1-2", "segments/1.5"}

// draw draws a command that all parties must answer alike.
func (x *play) draw() command {
	c := command{key: rapid.SampledFrom(differentialKeys).Draw(x.t, "key"), tag: -1}
	c.op = rapid.SampledFrom([]string{
		"put", "put", "put", "get", "get", "head", "delete", "list", "begin", "part", "part", "part", "finish", "finish", "abort", "uploads",
	}).Draw(x.t, "op")
	if len(x.begun) == 0 && slices.Contains([]string{"part", "finish", "abort"}, c.op) {
		c.op = "begin"
	}
	switch c.op {
	case "put":
		c.size = rapid.IntRange(0, 300).Draw(x.t, "size")
		x.condition(&c)
	case "get":
		c.pos, c.size = int64(rapid.IntRange(0, 400).Draw(x.t, "pos")), rapid.IntRange(0, 400).Draw(x.t, "size")
	case "list":
		x.list(&c)
	case "uploads":
		c.key = rapid.SampledFrom([]string{"", "b/", "a"}).Draw(x.t, "prefix")
	case "part":
		c.upload = x.upload(&c)
		c.number = rapid.IntRange(1, 3).Draw(x.t, "number")
		c.size = rapid.SampledFrom([]int{1, 100, 100, 100, 100, 100, 100, tiers.PartBytesMin}).Draw(x.t, "size")
	case "finish":
		c.upload = x.upload(&c)
		c.parts = rapid.SampledFrom([]string{"all", "all", "all", "first", "first", "wrong", "missing", "none"}).Draw(x.t, "parts")
		if c.parts == "first" || c.parts == "all" {
			x.condition(&c)
		}
	case "abort":
		c.upload = x.upload(&c)
	}
	return c
}

// condition draws a condition: none, absence, the tag of any write so far.
func (x *play) condition(c *command) {
	switch kind := rapid.IntRange(0, 3).Draw(x.t, "condition"); {
	case kind == 1:
		c.absent = true
	case kind > 1:
		var known []int
		for i, tag := range x.parties[0].tags {
			if tag != "" {
				known = append(known, i)
			}
		}
		if len(known) > 0 {
			// The latest are the likeliest to hold.
			c.tag = known[len(known)-1-min(len(known)-1, rapid.IntRange(0, 5).Draw(x.t, "tag"))]
		}
	}
}

// list draws a list that begins after a key that exists.
func (x *play) list(c *command) {
	c.key = rapid.SampledFrom([]string{"", "b/", "segments/1", "z"}).Draw(x.t, "prefix")
	c.limit = rapid.IntRange(1, 6).Draw(x.t, "limit")
	there, err := x.parties[0].b.List(x.t.Context(), c.key, "", tiers.PageMax)
	if err != nil {
		x.t.Fatal(err)
	}
	if i := rapid.IntRange(0, len(there)).Draw(x.t, "after"); i > 0 {
		c.after = there[i-1].Key
	}
}

func (x *play) upload(c *command) int {
	u := rapid.IntRange(max(0, len(x.begun)-3), len(x.begun)-1).Draw(x.t, "upload")
	c.key = x.begun[u]
	return u
}

// step plays a command, and what must follow it for all to stay alike.
func (x *play) step(c command) {
	if c.op == "finish" && (x.over[c.upload] || !x.parties[0].sound(c)) {
		c.absent, c.tag = false, -1 // which of two reasons a bucket refuses for is its own
	}
	if c.op == "part" && x.over[c.upload] {
		c.size = min(c.size, 100) // a server may hang up before a large body is sent
	}
	if c.op == "finish" && x.over[c.upload] && !x.parties[0].sound(c) {
		c.op = "abort"
	}
	a := x.all(c)
	switch c.op {
	case "begin":
		x.begun, x.over = append(x.begun, c.key), append(x.over, false)
	case "abort":
		x.over[c.upload] = true
	case "finish":
		if a.class != "done" && !x.over[c.upload] {
			x.all(command{op: "abort", key: c.key, upload: c.upload, tag: -1}) // the upload may be gone, or not
		}
		x.over[c.upload] = true
		x.all(command{op: "get", key: c.key, size: 400, tag: -1})
	}
}

// TestBucketsAgree plays random commands on the simulated bucket, a directory, two servers in process
// and a real one, and wants the same answers of all: results, and errors by class.
func TestBucketsAgree(t *testing.T) {
	server := tiertest.StartS3(t)
	runs, commands := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		runs++
		x := &play{t: r, parties: parties(t, server, runs)}
		for range rapid.IntRange(1, 30).Draw(r, "commands") {
			x.step(x.draw())
		}
		x.all(command{op: "list", limit: tiers.PageMax, tag: -1})
		x.all(command{op: "uploads", tag: -1})
		for _, key := range differentialKeys {
			x.all(command{op: "get", key: key, size: 400, tag: -1})
		}
		commands += len(x.said)
	})
	t.Logf("%d commands in %d runs, on each of 5 buckets", commands, runs)
}
