package fakebucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"varve/tiers"
)

// Errors of injected faults that are none of the seam's.
var (
	ErrTimeout  = errors.New("fakebucket: simulated time-out")
	ErrInternal = errors.New("fakebucket: simulated internal error")
	ErrBody     = errors.New("fakebucket: simulated error in the body of an answer with status 200")
	ErrShort    = errors.New("fakebucket: simulated body that is cut short")
)

var (
	errTooSmall = fmt.Errorf("fakebucket: a part that is not the last is too small: %w", tiers.ErrInvalid)
	errParts    = fmt.Errorf("fakebucket: bad list of parts: %w", tiers.ErrInvalid)
	errRange    = fmt.Errorf("fakebucket: bad position or limit: %w", tiers.ErrInvalid)
)

// Params describes a fresh bucket.
type Params struct {
	Seed         uint64 // of the bucket's own stream, until the first Seed
	PartBytesMin int64  // of every part but the last; 0 is the real tiers.PartBytesMin
	NoCRC        bool   // objects have no CRC
}

// Bucket is one simulated bucket.
type Bucket struct {
	Injector
	params   Params
	objects  []object // by key; also those that are gone, for what may come back
	uploads  []upload // by number
	begun    int      // uploads so far
	late     []change
	lastPut  string // the key that was changed last, for O10NotFound
	contents []contentID
	damages  []Damage
	calls    [OpCount]int64
	changes  uint64

	// Kept over Reset.
	bodies      [][]byte       // unused memory of bodies
	lists       [][]part       // unused memory of uploads
	orders      [][]tiers.Part // unused memory of late changes
	tags, names []string       // of the n-th content, of the n-th upload
}

var _ tiers.Bucket = (*Bucket)(nil)

// object is what the bucket holds, or held, under a key.
type object struct {
	key      string
	now, old content
}

// content is one version of an object, or a part.
type content struct {
	there bool
	body  []byte
	crc   uint32 // of what the client sent
	real  uint32 // of body
	tag   string
}

// contentID gives equal contents equal tags.
type contentID struct {
	sums  uint64 // CRC32C and CRC32
	bytes int
	parts int // of an object that was put in parts, else 0
	tag   int
}

// Damage is an object that a fault has cost its copy.
type Damage struct {
	Key   string
	Fault Fault
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// New returns a bucket as Reset(Params{}) leaves it.
func New() *Bucket {
	b := &Bucket{}
	b.Reset(Params{})
	return b
}

// Reset makes the bucket empty and faultless. It costs what was used since the last Reset.
func (b *Bucket) Reset(p Params) {
	for i := range b.objects {
		b.free(&b.objects[i].now)
		b.free(&b.objects[i].old)
		b.objects[i].key = ""
	}
	for len(b.uploads) > 0 {
		b.forget(len(b.uploads) - 1)
	}
	for i := range b.late {
		b.drop(&b.late[i])
	}
	if p.PartBytesMin == 0 {
		p.PartBytesMin = tiers.PartBytesMin
	}
	b.params = p
	b.objects, b.late, b.contents, b.damages = b.objects[:0], b.late[:0], b.contents[:0], b.damages[:0]
	b.begun, b.lastPut = 0, ""
	b.calls = [OpCount]int64{}
	b.changes++
	b.Injector.reset(p.Seed)
}

// Calls returns how often an operation was called since Reset.
func (b *Bucket) Calls(op Op) int64 { return b.calls[op] }

// begin is the start of every call: what is late may land, and a fault is drawn.
func (b *Bucket) begin(op Op, key string) Fault {
	b.calls[op]++
	if len(b.late) > 0 && !b.paused && b.rand.Chance(landRate) {
		b.land(int(b.rand.Below(uint64(len(b.late)))))
	}
	return b.draw(op, key)
}

// refuse returns the error of a fault that stops a call before it has an effect, else nil.
func (b *Bucket) refuse(f Fault) error {
	var err error
	switch f {
	case O1Before:
		err = ErrTimeout
	case O4Throttled:
		err = tiers.ErrThrottled
	case O4Internal:
		err = ErrInternal
	case O5Conflict:
		err = tiers.ErrConflict
	case O6Body:
		err = ErrBody
	case O11Denied, O11ReadOnly:
		err = tiers.ErrDenied
	default:
		return nil
	}
	b.mark(f)
	return err
}

// answer is what a call returns that did what it was asked to, or could not.
func (b *Bucket) answer(f Fault, cond tiers.Condition, err error) error {
	switch {
	case f == O2Applied || f == O13Deleted:
		err = ErrTimeout
	case f == O6Applied && err == nil:
		err = ErrBody
	case f == O5Own && err == nil && cond != (tiers.Condition{}):
		err = tiers.ErrPrecondition
	default:
		return err
	}
	b.mark(f)
	return err
}

// find returns where a key is, or belongs.
func (b *Bucket) find(key string) (int, bool) {
	lo, hi := 0, len(b.objects)
	for lo < hi {
		mid := (lo + hi) / 2
		if b.objects[mid].key < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(b.objects) && b.objects[lo].key == key
}

// Put implements tiers.Bucket.
func (b *Bucket) Put(_ context.Context, key string, body []byte, cond tiers.Condition) (tiers.Object, error) {
	if err := tiers.CheckKey(key); err != nil {
		return tiers.Object{}, err
	}
	if err := cond.Check(); err != nil {
		return tiers.Object{}, err
	}
	f := b.begin(OpPut, key)
	if err := b.refuse(f); err != nil {
		return tiers.Object{}, err
	}
	c := b.store(body)
	b.spoil(f, key, &c)
	if f == O3Late {
		return tiers.Object{}, b.later(change{op: OpPut, key: key, content: c, cond: cond})
	}
	o, err := b.put(key, c, cond)
	if err = b.answer(f, cond, err); err != nil {
		return tiers.Object{}, err
	}
	return o, nil
}

// put makes a content the object of a key if the condition holds. It owns the content.
func (b *Bucket) put(key string, c content, cond tiers.Condition) (tiers.Object, error) {
	i, ok := b.find(key)
	there := ok && b.objects[i].now.there && !b.gone(key)
	var err error
	switch {
	case cond.Absent && there:
		err = tiers.ErrPrecondition
	case cond.Tag != "" && !there:
		err = tiers.ErrNotFound
	case cond.Tag != "" && b.objects[i].now.tag != cond.Tag:
		err = tiers.ErrPrecondition
	}
	if err != nil {
		b.lost()
		b.free(&c)
		return tiers.Object{}, err
	}
	if b.away == key {
		b.away = ""
	}
	if !ok {
		b.objects = slices.Insert(b.objects, i, object{key: key})
	}
	b.retire(i)
	b.objects[i].now = c
	b.lastPut = key
	b.changes++
	return b.describe(key, &c), nil
}

// retire makes the object at i one that was.
func (b *Bucket) retire(i int) {
	o := &b.objects[i]
	if o.now.there {
		b.free(&o.old)
		o.old, o.now = o.now, content{}
	}
}

func (b *Bucket) describe(key string, c *content) tiers.Object {
	o := tiers.Object{Key: key, Tag: c.tag, Bytes: int64(len(c.body))}
	if !b.params.NoCRC {
		o.CRC, o.HasCRC = c.crc, true
	}
	return o
}

// store copies a body.
func (b *Bucket) store(body []byte) content {
	sum := crc32.Checksum(body, castagnoli)
	c := content{there: true, body: append(b.memory(), body...), crc: sum, real: sum}
	c.tag = b.tag(&c, 0)
	return c
}

func (b *Bucket) memory() []byte {
	n := len(b.bodies)
	if n == 0 {
		return nil
	}
	body := b.bodies[n-1]
	b.bodies = b.bodies[:n-1]
	return body[:0]
}

func (b *Bucket) free(c *content) {
	if c.body != nil {
		b.bodies = append(b.bodies, c.body)
	}
	*c = content{}
}

// tag returns the tag of a content that was put whole, or in parts.
func (b *Bucket) tag(c *content, parts int) string {
	id := contentID{sums: uint64(c.crc)<<32 | uint64(crc32.ChecksumIEEE(c.body)), bytes: len(c.body), parts: parts}
	i, ok := slices.BinarySearchFunc(b.contents, id, func(a, x contentID) int {
		return cmp.Or(cmp.Compare(a.sums, x.sums), cmp.Compare(a.bytes, x.bytes), cmp.Compare(a.parts, x.parts))
	})
	if !ok {
		id.tag = len(b.contents)
		b.contents = slices.Insert(b.contents, i, id)
	}
	for len(b.tags) < len(b.contents) {
		b.tags = append(b.tags, `"t`+strconv.Itoa(len(b.tags))+`"`)
	}
	return b.tags[b.contents[i].tag]
}

// Get implements tiers.Bucket.
func (b *Bucket) Get(_ context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	if err := tiers.CheckKey(key); err != nil {
		return 0, tiers.Object{}, err
	}
	if pos < 0 {
		return 0, tiers.Object{}, errRange
	}
	f := b.begin(OpGet, key)
	c, err := b.look(f, key)
	if err != nil {
		return 0, tiers.Object{}, err
	}
	if f == O9Rot && b.Flip(key, b.rand.Below(uint64(len(c.body))*8)) {
		b.mark(f)
	}
	n := 0
	if pos < int64(len(c.body)) {
		n = copy(p, c.body[pos:])
	}
	n, err = b.distort(f, c, pos, p, n)
	if err != nil {
		return 0, tiers.Object{}, err
	}
	return n, b.describe(key, c), nil
}

// distort lets a fault strike a body of n bytes on its way to the reader.
func (b *Bucket) distort(f Fault, c *content, pos int64, p []byte, n int) (int, error) {
	switch {
	case n == 0:
		return n, nil
	case f == O8Error:
		b.mark(f)
		return 0, ErrShort
	case f == O8Short:
		b.mark(f)
		return int(b.rand.Below(uint64(n))), nil
	case f == O8Range && pos > 0:
		b.mark(f)
		return copy(p, c.body), nil
	case f == O9Read:
		b.mark(f)
		bit := b.rand.Below(uint64(n) * 8)
		p[bit/8] ^= 1 << (bit % 8)
	}
	return n, nil
}

// Head implements tiers.Bucket.
func (b *Bucket) Head(_ context.Context, key string) (tiers.Object, error) {
	if err := tiers.CheckKey(key); err != nil {
		return tiers.Object{}, err
	}
	c, err := b.look(b.begin(OpHead, key), key)
	if err != nil {
		return tiers.Object{}, err
	}
	return b.describe(key, c), nil
}

// look returns what a reader sees of an object.
func (b *Bucket) look(f Fault, key string) (*content, error) {
	if err := b.refuse(f); err != nil {
		return nil, err
	}
	i, ok := b.find(key)
	if !ok || b.gone(key) {
		return nil, tiers.ErrNotFound
	}
	o := &b.objects[i]
	switch {
	case f == O10NotFound && o.now.there && b.lastPut == key:
		b.mark(f)
		return nil, tiers.ErrNotFound
	case f == O10Expired && b.Expire(key), f == O14Restored && b.Restore(key):
		b.mark(f)
	case f == O14Stale && o.old.there:
		b.mark(f)
		return &o.old, nil
	}
	if !o.now.there {
		return nil, tiers.ErrNotFound
	}
	return &o.now, nil
}

// Delete implements tiers.Bucket.
func (b *Bucket) Delete(_ context.Context, key string) error {
	if err := tiers.CheckKey(key); err != nil {
		return err
	}
	f := b.begin(OpDelete, key)
	if err := b.refuse(f); err != nil {
		return err
	}
	if f == O3Late {
		return b.later(change{op: OpDelete, key: key})
	}
	b.remove(key)
	return b.answer(f, tiers.Condition{}, nil)
}

// remove reports whether there was an object.
func (b *Bucket) remove(key string) bool {
	i, ok := b.find(key)
	if !ok || !b.objects[i].now.there {
		return false
	}
	b.retire(i)
	b.lastPut = key
	b.changes++
	return true
}

// List implements tiers.Bucket.
func (b *Bucket) List(_ context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	if err := tiers.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if limit < 1 || limit > tiers.PageMax {
		return nil, errRange
	}
	if err := b.refuse(b.begin(OpList, prefix)); err != nil {
		return nil, err
	}
	var out []tiers.Object
	for i := range b.objects {
		o := &b.objects[i]
		if !o.now.there || o.key == b.away || o.key <= after || !strings.HasPrefix(o.key, prefix) {
			continue
		}
		if out = append(out, tiers.Object{Key: o.key, Tag: o.now.tag, Bytes: int64(len(o.now.body))}); len(out) == limit {
			break
		}
	}
	return out, nil
}
