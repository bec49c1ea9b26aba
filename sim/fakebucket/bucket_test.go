package fakebucket

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"os"
	"testing"

	"varve/faultfs"
	"varve/tiers"
	"varve/tiers/tiertest"
)

func TestContract(t *testing.T) {
	used := New()
	for name, fresh := range map[string]func() *Bucket{
		"New": New,
		"Reset": func() *Bucket {
			churn(t.Context(), used, 1)
			used.Reset(Params{})
			return used
		},
	} {
		t.Run(name, func(t *testing.T) {
			tiertest.TestBucket(t, tiertest.BucketTraits{Serial: true}, func(*testing.T) tiers.Bucket { return fresh() })
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want %v", err, target)
	}
}

// stored wants what a bucket really holds under a key; "" is nothing.
func stored(t *testing.T, b *Bucket, key, body string) {
	t.Helper()
	for i := range b.Len() {
		if k, got, there := b.At(i); k == key && there {
			if string(got) != body {
				t.Fatalf("%s holds %q, want %q", key, got, body)
			}
			return
		}
	}
	if body != "" {
		t.Fatalf("%s is gone, want %q", key, body)
	}
}

var absent = tiers.Condition{Absent: true}

// TestEveryCallFault arms every fault on every call that it can strike and looks at answer, effect and
// mark.
func TestEveryCallFault(t *testing.T) {
	type effect struct {
		err     error
		applied bool
	}
	effects := map[Fault]effect{
		O1Before: {ErrTimeout, false}, O2Applied: {ErrTimeout, true}, O3Late: {ErrTimeout, false},
		O4Throttled: {tiers.ErrThrottled, false}, O4Internal: {ErrInternal, false},
		O5Own: {tiers.ErrPrecondition, true}, O5Conflict: {tiers.ErrConflict, false},
		O6Body: {ErrBody, false}, O6Applied: {ErrBody, true}, O7Missing: {tiers.ErrInvalid, false},
		O7Gone: {tiers.ErrNoUpload, false}, O7Orphan: {nil, false}, O8Error: {ErrShort, false},
		O8Short: {nil, false}, O8Range: {nil, false}, O9Read: {nil, false}, O9Rot: {nil, false},
		O9Write: {nil, true}, O10NotFound: {tiers.ErrNotFound, false}, O10Expired: {tiers.ErrNotFound, false},
		O11Denied: {tiers.ErrDenied, false}, O11ReadOnly: {tiers.ErrDenied, false}, O13Deleted: {ErrTimeout, true}, O14Stale: {nil, false},
		O14Restored: {nil, false},
	}
	ctx := t.Context()
	pairs := 0
	for op := range OpCount {
		for f := NoFault + 1; f < FaultCount; f++ {
			if !CallFaults(op).Has(f) {
				continue
			}
			pairs++
			b := New()
			_, err := b.Put(ctx, "k", []byte("old"), tiers.Condition{})
			must(t, err)
			now, err := b.Put(ctx, "k", []byte("now"), tiers.Condition{})
			must(t, err)
			id, err := b.Begin(ctx, "k")
			must(t, err)
			part, err := b.PutPart(ctx, "k", id, 1, []byte("part"))
			must(t, err)
			b.FailNext(op, f)
			applied, err := call(ctx, b, op, id, part, now.Tag)
			e, ok := effects[f]
			if !ok {
				t.Fatalf("%v has no line in this table", f)
			}
			if !errors.Is(err, e.err) {
				t.Errorf("%v, %v: error %v, want %v", op, f, err, e.err)
			}
			if changes(op) && applied() != e.applied {
				t.Errorf("%v, %v: applied %v", op, f, applied())
			}
			if b.Marks() != f.Bit() || b.Struck(f) != 1 || b.Armed() != 0 {
				t.Errorf("%v, %v: marks %b, struck %d, armed %d", op, f, b.Marks(), b.Struck(f), b.Armed())
			}
			if Damaging.Has(f) != (len(b.Damages()) == 1) {
				t.Errorf("%v, %v: damages %v", op, f, b.Damages())
			}
			if (f == O3Late) != (b.Late() == 1) {
				t.Errorf("%v, %v: %d late", op, f, b.Late())
			}
			b.Settle()
			if f == O3Late && !applied() {
				t.Errorf("%v, %v: never landed", op, f)
			}
		}
	}
	if pairs < 60 {
		t.Fatalf("only %d pairs", pairs)
	}
}

func changes(op Op) bool { return op != OpGet && op != OpHead && op != OpList && op != OpUploads }

// call makes one call, and returns what tells whether it was applied.
func call(ctx context.Context, b *Bucket, op Op, id string, part tiers.Part, tag string) (applied func() bool, err error) {
	cond := tiers.Condition{Tag: tag}
	differs := func() bool {
		_, body, there := b.At(0)
		return !there || string(body) != "now"
	}
	switch op {
	case OpPut:
		_, err = b.Put(ctx, "k", []byte("new"), cond)
		return differs, err
	case OpBegin:
		_, err = b.Begin(ctx, "k")
		return func() bool { return b.Open() == 2 }, err
	case OpPart:
		_, err = b.PutPart(ctx, "k", id, 2, []byte("second"))
		return func() bool { return len(b.uploads) == 1 && len(b.uploads[0].parts) == 2 }, err
	case OpFinish:
		_, err = b.Finish(ctx, "k", id, []tiers.Part{part}, cond)
		return differs, err
	case OpAbort:
		return func() bool { return b.Open() == 0 }, b.Abort(ctx, "k", id)
	case OpGet:
		_, _, err = b.Get(ctx, "k", 1, make([]byte, 2))
	case OpHead:
		_, err = b.Head(ctx, "k")
	case OpDelete:
		return differs, b.Delete(ctx, "k")
	case OpList:
		_, err = b.List(ctx, "", "", 1)
	case OpUploads:
		_, err = b.Uploads(ctx, "")
	}
	return func() bool { return false }, err
}

func get(t *testing.T, b *Bucket, pos int64, n int) string {
	t.Helper()
	p := make([]byte, n)
	n, _, err := b.Get(t.Context(), "k", pos, p)
	must(t, err)
	return string(p[:n])
}

// TestReadFaults looks at what a reader gets.
func TestReadFaults(t *testing.T) {
	b := New()
	_, err := b.Put(t.Context(), "k", []byte("version one"), tiers.Condition{})
	must(t, err)
	_, err = b.Put(t.Context(), "k", []byte("version two"), tiers.Condition{})
	must(t, err)
	b.FailNext(OpGet, O14Stale)
	if got := get(t, b, 0, 20); got != "version one" {
		t.Errorf("stale: %q", got)
	}
	b.FailNext(OpGet, O8Short)
	if got := get(t, b, 0, 20); got != "version two"[:len(got)] || len(got) >= 11 {
		t.Errorf("short: %q", got)
	}
	b.FailNext(OpGet, O8Range)
	if got := get(t, b, 8, 3); got != "ver" {
		t.Errorf("another range: %q", got)
	}
	b.FailNext(OpGet, O9Read)
	if got := get(t, b, 0, 20); got == "version two" || len(got) != 11 {
		t.Errorf("flipped on the way: %q", got)
	}
	stored(t, b, "k", "version two")
	b.FailNext(OpGet, O9Rot)
	rotten := get(t, b, 0, 20)
	if rotten == "version two" || get(t, b, 0, 20) != rotten {
		t.Errorf("rot: %q", rotten)
	}
	if o, err := b.Head(t.Context(), "k"); err != nil || o.CRC != crc32.Checksum([]byte("version two"), castagnoli) {
		t.Errorf("the CRC of rotten bytes: %+v, %v", o, err)
	}
	b.FailNext(OpHead, O14Restored)
	_, err = b.Head(t.Context(), "k")
	must(t, err)
	stored(t, b, "k", "version one")
	must(t, b.Delete(t.Context(), "k"))
	stored(t, b, "k", "")
	if !b.Restore("k") {
		t.Error("a deleted object cannot come back")
	}
	stored(t, b, "k", "version one")
}

// TestLateWrites: the condition counts when the write lands.
func TestLateWrites(t *testing.T) {
	b := New()
	ctx := t.Context()
	b.FailNext(OpPut, O3Late)
	body := []byte("late")
	_, err := b.Put(ctx, "k", body, absent)
	want(t, err, ErrTimeout)
	clear(body)
	stored(t, b, "k", "")
	b.Settle()
	stored(t, b, "k", "late")
	_, err = b.Put(ctx, "k", []byte("again"), absent)
	want(t, err, tiers.ErrPrecondition) // which is this client's own write

	b.FailNext(OpPut, O3Late)
	_, err = b.Put(ctx, "other", []byte("late"), absent)
	want(t, err, ErrTimeout)
	landed := 0
	for seed := range uint64(64) {
		b.Seed(seed)
		_, err = b.Head(ctx, "nothing")
		want(t, err, tiers.ErrNotFound)
		if b.Late() == 0 {
			landed++
			break
		}
	}
	if landed == 0 {
		t.Fatal("nothing lands in a later call")
	}
	stored(t, b, "other", "late")
	// Overtaken by another client it fails, and nobody hears of it.
	b.FailNext(OpPut, O3Late)
	_, err = b.Put(ctx, "third", []byte("late"), absent)
	want(t, err, ErrTimeout)
	_, err = b.put("third", b.store([]byte("first")), absent) // not as a call, before which the other may land
	must(t, err)
	b.Settle()
	stored(t, b, "third", "first")
}

func TestOutage(t *testing.T) {
	b := New()
	for _, f := range []Fault{O1Before, O4Throttled, O11Denied} {
		b.SetDown(f)
		for op := range OpCount {
			if _, err := call(t.Context(), b, op, "u0", tiers.Part{}, "x"); err == nil {
				t.Errorf("%v answers in an outage", op)
			}
		}
	}
	b.Heal()
	_, err := b.Put(t.Context(), "k", []byte("x"), absent)
	must(t, err)
	b.SetDown(O11ReadOnly)
	for op := range OpCount {
		if _, err := call(t.Context(), b, op, "u0", tiers.Part{}, "x"); errors.Is(err, tiers.ErrDenied) != changes(op) {
			t.Errorf("%v of a bucket that may only be read: %v", op, err)
		}
	}
	stored(t, b, "k", "x")
	defer func() {
		if recover() == nil {
			t.Error("a fault with an effect was taken for an outage")
		}
	}()
	b.SetDown(O2Applied)
}

// TestAway: an object that is away is not there, until it is put anew or is back.
func TestAway(t *testing.T) {
	b := New()
	for _, key := range []string{"k", "other"} {
		_, err := b.Put(t.Context(), key, []byte("x"), absent)
		must(t, err)
	}
	o, err := b.Head(t.Context(), "k")
	must(t, err)
	b.SetAway("k")
	_, err = b.Head(t.Context(), "k")
	want(t, err, tiers.ErrNotFound)
	_, _, err = b.Get(t.Context(), "k", 0, make([]byte, 1))
	want(t, err, tiers.ErrNotFound)
	_, err = b.Put(t.Context(), "k", []byte("y"), tiers.Condition{Tag: o.Tag})
	want(t, err, tiers.ErrNotFound)
	if list, err := b.List(t.Context(), "", "", 10); err != nil || len(list) != 1 || list[0].Key != "other" {
		t.Errorf("%v, %v", list, err)
	}
	stored(t, b, "other", "x")
	b.SetAway("")
	stored(t, b, "k", "x")
	b.SetAway("k")
	_, err = b.Put(t.Context(), "k", []byte("anew"), absent)
	must(t, err)
	stored(t, b, "k", "anew")
	b.SetAway("k")
	b.Heal()
	stored(t, b, "k", "anew")
}

// TestDownAfterLoss: the outage begins with the first condition that does not hold.
func TestDownAfterLoss(t *testing.T) {
	b := New()
	b.SetDownAfterLoss(O1Before)
	_, err := b.Put(t.Context(), "k", []byte("x"), absent)
	must(t, err)
	stored(t, b, "k", "x")
	_, err = b.Put(t.Context(), "k", []byte("x"), absent)
	want(t, err, tiers.ErrPrecondition)
	_, err = b.Head(t.Context(), "k")
	want(t, err, ErrTimeout)
	b.Heal()
	_, err = b.Put(t.Context(), "k", []byte("x"), absent)
	want(t, err, tiers.ErrPrecondition)
	stored(t, b, "k", "x")
}

func TestSpared(t *testing.T) {
	b := New()
	b.Spare(AllFaults)
	b.FailNext(OpPut, O1Before)
	b.SetFaults(AllFaults)
	b.SetRates(&Rates{OpPut: 65535})
	for range 20 {
		_, err := b.Put(t.Context(), "k", []byte("x"), tiers.Condition{})
		must(t, err)
	}
	if b.Marks() != 0 {
		t.Errorf("marks %b", b.Marks())
	}
}

func TestNames(t *testing.T) {
	page, err := os.ReadFile("../../TESTING.md")
	must(t, err)
	for f := range FaultCount {
		if g, ok := ParseFault(f.String()); !ok || g != f {
			t.Errorf("%d: name %q", f, f)
		}
		if f != NoFault {
			if !bytes.Contains(page, []byte("`"+f.String()+"`")) {
				t.Errorf("TESTING.md does not list %v", f)
			}
			strikes := f == O10Away // of a key
			for op := range OpCount {
				strikes = strikes || CallFaults(op).Has(f)
			}
			if !strikes {
				t.Errorf("%v strikes no call", f)
			}
		}
	}
	for op := range OpCount {
		if op.String() == "" {
			t.Errorf("call %d has no name", op)
		}
	}
}

var keys = [...]string{"manifest.json", "segments/1", "segments/2", "pages/1"}

// churn makes calls with every fault on, and returns a hash of all answers and of what is left.
func churn(ctx context.Context, b *Bucket, seed uint64) uint64 {
	b.Reset(Params{Seed: seed, PartBytesMin: 8})
	b.SetFaults(AllFaults)
	var rates Rates
	for i := range rates {
		rates[i] = 8000
	}
	b.SetRates(&rates)
	var r faultfs.Rand
	r.Seed(seed)
	var body, p [64]byte
	var parts [4]tiers.Part
	h := uint64(0)
	id, uploading, n, tag := "", "", 0, ""
	for i := range 300 {
		b.Seed(r.Next())
		key := keys[r.Below(uint64(len(keys)))]
		size := int(r.Below(uint64(len(body))))
		for j := range body[:size] {
			body[j] = byte(i + j)
		}
		var err error
		var o tiers.Object
		switch r.Below(8) {
		case 0:
			o, err = b.Put(ctx, key, body[:size], absent)
		case 1:
			o, err = b.Put(ctx, key, body[:size], tiers.Condition{Tag: tag})
		case 2:
			var got int
			got, o, err = b.Get(ctx, key, int64(r.Below(64)), p[:size])
			h = h*31 + uint64(crc32.ChecksumIEEE(p[:got]))
		case 3:
			o, err = b.Head(ctx, key)
		case 4:
			err = b.Delete(ctx, key)
		case 5:
			if id, err = b.Begin(ctx, key); err == nil {
				uploading, n = key, 0
			}
		case 6:
			if uploading != "" && n < len(parts) {
				if parts[n], err = b.PutPart(ctx, uploading, id, n+1, body[:32]); err == nil {
					n++
				}
			}
		case 7:
			if uploading != "" {
				if o, err = b.Finish(ctx, uploading, id, parts[:n], tiers.Condition{}); err != nil {
					err = b.Abort(ctx, uploading, id)
				}
				uploading = ""
			}
		}
		if o.Tag != "" {
			tag = o.Tag
		}
		h = h*31 + uint64(o.CRC) + uint64(len(o.Tag))
		if err != nil {
			h = h*31 + uint64(crc32.ChecksumIEEE([]byte(err.Error())))
		}
	}
	b.Heal()
	b.Settle()
	for i := range b.Len() {
		_, body, there := b.At(i)
		h = h*31 + uint64(crc32.ChecksumIEEE(body))
		if there {
			h++
		}
	}
	return h*31 + uint64(b.Marks())
}

func TestSameSeedTwice(t *testing.T) {
	used := New()
	marks, hashes := FaultSet(0), map[uint64]bool{}
	for seed := range uint64(300) {
		a := churn(t.Context(), New(), seed)
		if b := churn(t.Context(), used, seed); a != b {
			t.Fatalf("seed %d: %x in a fresh bucket, %x in a used one", seed, a, b)
		}
		marks |= used.Marks()
		hashes[a] = true
	}
	marks |= O10Away.Bit() // of SetAway alone
	if marks != AllFaults {
		for f := NoFault + 1; f < FaultCount; f++ {
			if !marks.Has(f) {
				t.Errorf("no seed meets %v", f)
			}
		}
	}
	if len(hashes) != 300 {
		t.Errorf("%d different runs of 300", len(hashes))
	}
}

func TestNoAllocations(t *testing.T) {
	b := New()
	ctx := context.Background()
	some, others := []byte("some bytes"), []byte("others")
	put := func() {
		b.Reset(Params{PartBytesMin: 1})
		b.FailNext(OpPut, O3Late)
		var parts [2]tiers.Part
		for i := range keys {
			_, _ = b.Put(ctx, keys[i], some, absent)
			_, _ = b.Put(ctx, keys[i], others, absent)
			id, _ := b.Begin(ctx, keys[i])
			parts[0], _ = b.PutPart(ctx, keys[i], id, 1, some)
			parts[1], _ = b.PutPart(ctx, keys[i], id, 2, others)
			b.FailNext(OpFinish, O3Late)
			_, _ = b.Finish(ctx, keys[i], id, parts[:], tiers.Condition{})
			var p [10]byte
			_, _, _ = b.Get(ctx, keys[i], 0, p[:])
			_, _ = b.Head(ctx, keys[i])
			_ = b.Delete(ctx, keys[i])
			_ = b.Abort(ctx, keys[i], id)
		}
		b.Settle()
	}
	put()
	put()
	if n := testing.AllocsPerRun(100, put); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParts(t *testing.T) {
	b := New()
	b.Reset(Params{PartBytesMin: 4})
	id, err := b.Begin(t.Context(), "k")
	must(t, err)
	var parts []tiers.Part
	for i, body := range []string{"1234", "56789", "0"} {
		part, err := b.PutPart(t.Context(), "k", id, i+1, []byte(body))
		must(t, err)
		parts = append(parts, part)
	}
	o, err := b.Finish(t.Context(), "k", id, parts, absent)
	must(t, err)
	stored(t, b, "k", "1234567890")
	whole, err := b.Put(t.Context(), "k", []byte("1234567890"), tiers.Condition{Tag: o.Tag})
	must(t, err)
	if whole.Tag == o.Tag || whole.CRC != o.CRC {
		t.Errorf("put whole %+v, in parts %+v", whole, o) // as S3 does it
	}
	again, err := b.Put(t.Context(), "other", []byte("1234567890"), absent)
	must(t, err)
	if again.Tag != whole.Tag {
		t.Errorf("equal bytes have the tags %s and %s", again.Tag, whole.Tag)
	}
}

func BenchmarkPutGet(b *testing.B) {
	x := New()
	ctx := context.Background()
	body := bytes.Repeat([]byte("0123456789abcdef"), 128)
	p := make([]byte, 512)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%64 == 0 {
			x.Reset(Params{Seed: uint64(i)})
		}
		body[i%len(body)]++
		if _, err := x.Put(ctx, keys[i%len(keys)], body, tiers.Condition{}); err != nil {
			b.Fatal(err)
		}
		if _, _, err := x.Get(ctx, keys[i%len(keys)], 512, p); err != nil {
			b.Fatal(err)
		}
	}
}
