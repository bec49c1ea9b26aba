package tiertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"

	"varve/tiers"
)

// BucketTraits says what a bucket is excused from.
type BucketTraits struct {
	Serial  bool // it belongs to one goroutine
	Folders bool // a key may not lead through an object: "a" and "a/b" exclude each other
	NoCRC   bool // Head and Get need not tell a CRC
	// List is asked only for what comes after an object that exists.
	AfterExists bool
}

// TestBucket checks the contract of tiers.Bucket. newBucket returns an empty bucket, each call another
// one.
func TestBucket(t *testing.T, traits BucketTraits, newBucket func(t *testing.T) tiers.Bucket) {
	tests := []struct {
		name string
		run  func(t *testing.T, b tiers.Bucket)
		skip bool
	}{
		{"Absent", testBucketAbsent, false},
		{"PutGet", testBucketPutGet, false},
		{"Conditions", testBucketConditions, false},
		{"Tags", testBucketTags, false},
		{"Ranges", testBucketRanges, false},
		{"Delete", testBucketDelete, false},
		{"List", testBucketList, traits.AfterExists},
		{"ListPages", testBucketPages, false},
		{"Keys", testBucketKeys, false},
		{"KeysInKeys", testBucketNested, traits.Folders},
		{"BadInput", testBucketBadInput, false},
		{"CRC", testBucketCRC, traits.NoCRC},
		{"Large", testBucketLarge, false},
		{"Parts", testBucketParts, false},
		{"PartsConditions", testBucketPartsConditions, false},
		{"PartsRefused", testBucketPartsRefused, false},
		{"Aborted", testBucketAborted, false},
		{"Finished", testBucketFinished, false},
		{"Uploads", testBucketUploads, false},
		{"Race", testBucketRace, traits.Serial},
		{"RaceSwap", testBucketRaceSwap, traits.Serial},
		{"RaceFinish", testBucketRaceFinish, traits.Serial},
		{"Canceled", testBucketCanceled, traits.Serial},
	}
	for _, tt := range tests {
		if !tt.skip {
			t.Run(tt.name, func(t *testing.T) { tt.run(t, newBucket(t)) })
		}
	}
}

// Conditions of the suite.
var (
	anyway = tiers.Condition{}
	absent = tiers.Condition{Absent: true}
	table  = crc32.MakeTable(crc32.Castagnoli)
)

func tagged(tag string) tiers.Condition { return tiers.Condition{Tag: tag} }

// pattern returns bytes that differ for every seed, and repeat with a period that no part or block has.
func pattern(n, seed int) []byte {
	const period = 65_537
	p := make([]byte, n)
	x := uint32(seed)*2654435761 + 1
	for i := range p[:min(n, period)] {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		p[i] = byte(x)
	}
	for done := period; done < n; done += period {
		copy(p[done:], p[:period])
	}
	return p
}

// mustPut stores an object and returns it.
func mustPut(t *testing.T, b tiers.Bucket, key string, body []byte, cond tiers.Condition) tiers.Object {
	t.Helper()
	o, err := b.Put(t.Context(), key, body, cond)
	no(t, err)
	if o.Key != key || o.Tag == "" || o.Bytes != int64(len(body)) {
		t.Fatalf("put %s, %d bytes: answer %+v", key, len(body), o)
	}
	return o
}

// holds wants an object with a content, and wants Head, Get and List to say the same of it.
func holds(t *testing.T, b tiers.Bucket, key string, body []byte) tiers.Object {
	t.Helper()
	head, err := b.Head(t.Context(), key)
	no(t, err)
	if head.Key != key || head.Bytes != int64(len(body)) || head.Tag == "" {
		t.Fatalf("head of %s with %d bytes: %+v", key, len(body), head)
	}
	if head.HasCRC && head.CRC != crc32.Checksum(body, table) {
		t.Fatalf("head of %s: CRC %08x, want %08x", key, head.CRC, crc32.Checksum(body, table))
	}
	p := make([]byte, len(body)+1)
	n, o, err := b.Get(t.Context(), key, 0, p)
	no(t, err)
	if n != len(body) || !bytes.Equal(p[:n], body) {
		t.Fatalf("get %s: %d bytes, equal: %v, want %d bytes", key, n, bytes.Equal(p[:n], body[:min(n, len(body))]), len(body))
	}
	if o.Key != key || o.Tag != head.Tag || o.Bytes != head.Bytes {
		t.Fatalf("get %s describes %+v, head %+v", key, o, head)
	}
	list, err := b.List(t.Context(), key, "", 1)
	no(t, err)
	if len(list) != 1 || list[0].Key != key || list[0].Tag != head.Tag || list[0].Bytes != head.Bytes {
		t.Fatalf("list of %s: %+v, head %+v", key, list, head)
	}
	return head
}

func missing(t *testing.T, b tiers.Bucket, key string) {
	t.Helper()
	_, err := b.Head(t.Context(), key)
	want(t, err, tiers.ErrNotFound)
	_, _, err = b.Get(t.Context(), key, 0, make([]byte, 8))
	want(t, err, tiers.ErrNotFound)
}

func testBucketAbsent(t *testing.T, b tiers.Bucket) {
	missing(t, b, "a")
	missing(t, b, "a/b/c")
	no(t, b.Delete(t.Context(), "a"))
	no(t, b.Delete(t.Context(), "a/b/c"))
	list, err := b.List(t.Context(), "", "", tiers.PageMax)
	no(t, err)
	uploads, err := b.Uploads(t.Context(), "")
	no(t, err)
	if len(list) != 0 || len(uploads) != 0 {
		t.Fatalf("an empty bucket lists %v and uploads %v", list, uploads)
	}
}

func testBucketPutGet(t *testing.T, b tiers.Bucket) {
	for i, n := range []int{0, 1, 7, 4096, 65537} {
		body := pattern(n, i)
		key := fmt.Sprintf("folder/%d", n)
		put := mustPut(t, b, key, body, anyway)
		if head := holds(t, b, key, body); head.Tag != put.Tag {
			t.Fatalf("tag %s after put answered %s", head.Tag, put.Tag)
		}
	}
	// A caller may use its buffer again at once.
	body := pattern(100, 1)
	mustPut(t, b, "kept", body, anyway)
	clear(body)
	holds(t, b, "kept", pattern(100, 1))
	// Replaced by something shorter.
	mustPut(t, b, "kept", []byte("x"), anyway)
	holds(t, b, "kept", []byte("x"))
}

func testBucketConditions(t *testing.T, b tiers.Bucket) {
	ctx := t.Context()
	_, err := b.Put(ctx, "a/k", []byte("0"), tagged(`"d41d8cd98f00b204e9800998ecf8427e"`))
	want(t, err, tiers.ErrNotFound)
	missing(t, b, "a/k")
	first := mustPut(t, b, "a/k", []byte("first"), absent)
	_, err = b.Put(ctx, "a/k", []byte("second"), absent)
	want(t, err, tiers.ErrPrecondition)
	_, err = b.Put(ctx, "a/k", []byte("first"), absent) // equal bytes are no excuse
	want(t, err, tiers.ErrPrecondition)
	holds(t, b, "a/k", []byte("first"))
	second := mustPut(t, b, "a/k", []byte("second"), tagged(first.Tag))
	_, err = b.Put(ctx, "a/k", []byte("third"), tagged(first.Tag))
	want(t, err, tiers.ErrPrecondition)
	holds(t, b, "a/k", []byte("second"))
	no(t, b.Delete(ctx, "a/k"))
	_, err = b.Put(ctx, "a/k", []byte("third"), tagged(second.Tag))
	want(t, err, tiers.ErrNotFound)
	missing(t, b, "a/k")
	mustPut(t, b, "a/k", []byte("again"), absent)
	holds(t, b, "a/k", []byte("again"))
}

func testBucketTags(t *testing.T, b tiers.Bucket) {
	seen := map[string]string{}
	for i := range 20 {
		body := fmt.Sprint("body ", i)
		o := mustPut(t, b, "k", []byte(body), anyway)
		if was, ok := seen[o.Tag]; ok {
			t.Fatalf("%q and %q have the tag %s", was, body, o.Tag)
		}
		seen[o.Tag] = body
	}
}

func testBucketRanges(t *testing.T, b tiers.Bucket) {
	const size = 1000
	body := pattern(size, 3)
	put := mustPut(t, b, "k", body, anyway)
	for _, pos := range []int64{0, 1, 499, 998, 999, 1000, 1001, 5000, 1 << 40} {
		for _, length := range []int{0, 1, 2, 500, 999, 1000, 1001, 4096} {
			p := bytes.Repeat([]byte{0xEE}, length)
			n, o, err := b.Get(t.Context(), "k", pos, p)
			if err != nil {
				t.Fatalf("get %d at %d: %v", length, pos, err)
			}
			expect := body[min(pos, size):min(pos+int64(length), size)]
			if n != len(expect) || !bytes.Equal(p[:n], expect) {
				t.Fatalf("get %d at %d: %d bytes, equal %v, want %d", length, pos, n, bytes.Equal(p[:n], expect), len(expect))
			}
			if o.Key != "k" || o.Tag != put.Tag || o.Bytes != size {
				t.Fatalf("get %d at %d describes %+v", length, pos, o)
			}
		}
	}
	mustPut(t, b, "empty", nil, anyway)
	for _, pos := range []int64{0, 1} {
		n, o, err := b.Get(t.Context(), "empty", pos, make([]byte, 4))
		if n != 0 || err != nil || o.Bytes != 0 || o.Tag == "" {
			t.Fatalf("get of an empty object at %d: %d, %+v, %v", pos, n, o, err)
		}
	}
}

func testBucketDelete(t *testing.T, b tiers.Bucket) {
	mustPut(t, b, "a/b/c", []byte("1"), anyway)
	mustPut(t, b, "a/b/d", []byte("2"), anyway)
	no(t, b.Delete(t.Context(), "a/b/c"))
	no(t, b.Delete(t.Context(), "a/b/c"))
	no(t, b.Delete(t.Context(), "a/b")) // no object
	missing(t, b, "a/b/c")
	holds(t, b, "a/b/d", []byte("2"))
	no(t, b.Delete(t.Context(), "a/b/d"))
	mustPut(t, b, "a", []byte("3"), absent) // nothing is left of a/b/d
	holds(t, b, "a", []byte("3"))
}

func keysOf(list []tiers.Object) []string {
	keys := []string{}
	for _, o := range list {
		keys = append(keys, o.Key)
	}
	return keys
}

func testBucketList(t *testing.T, b tiers.Bucket) {
	// '-' and '.' sort before '/', '0' behind it.
	all := []string{"a-b", "a.b", "a/1", "a/1-2/x", "a/1/x", "a/10", "a/2", "a0", "b/c/d/e", "c", "é/1"}
	all = slices.DeleteFunc(all, func(k string) bool { return k == "a/1" }) // which leads through an object
	for i := range all {
		mustPut(t, b, all[(i*7)%len(all)], []byte{byte(i)}, anyway)
	}
	for _, prefix := range []string{"", "a", "a/", "a/1", "a/1/", "b/c", "c", "d", "é"} {
		for _, after := range []string{"", "a", "a/1/x", "a/1/y", "a/", "b", "zz", "é/1"} {
			expect := []string{}
			for _, k := range all {
				if strings.HasPrefix(k, prefix) && k > after {
					expect = append(expect, k)
				}
			}
			list, err := b.List(t.Context(), prefix, after, tiers.PageMax)
			no(t, err)
			if got := keysOf(list); !slices.Equal(got, expect) {
				t.Fatalf("list of %q after %q: %q, want %q", prefix, after, got, expect)
			}
		}
	}
}

func testBucketPages(t *testing.T, b tiers.Bucket) {
	var all []string
	for i := range 23 {
		all = append(all, fmt.Sprintf("p/%c/%02d", 'a'+i%3, i))
		mustPut(t, b, all[i], []byte{byte(i)}, anyway)
	}
	slices.Sort(all)
	for _, limit := range []int{1, 2, 5, 23, 24} {
		got, after := []string{}, ""
		for len(got) <= len(all) {
			list, err := b.List(t.Context(), "p/", after, limit)
			no(t, err)
			got = append(got, keysOf(list)...)
			if len(list) > limit {
				t.Fatalf("%d objects at a limit of %d", len(list), limit)
			}
			if len(list) < limit {
				break
			}
			after = list[len(list)-1].Key
		}
		if !slices.Equal(got, all) {
			t.Fatalf("pages of %d: %q", limit, got)
		}
	}
}

func testBucketKeys(t *testing.T, b tiers.Bucket) {
	name := strings.Repeat("n", 200)
	keys := []string{
		"a b", "a+b", "a%2Fb", "a%41", "a&b=c?d#e", "a;b:c@d!", "'q'", "(x)", "~", "$a", "a,b", "ü/ñ/日本", "...", "a..b", "..a/x", "0", "-",
		name + "/" + name + "/" + name + "/" + name[:100],
	}
	for i, key := range keys {
		mustPut(t, b, key, []byte(fmt.Sprint(i)), absent)
	}
	for i, key := range keys {
		holds(t, b, key, []byte(fmt.Sprint(i)))
	}
	list, err := b.List(t.Context(), "", "", tiers.PageMax)
	no(t, err)
	slices.Sort(keys)
	if got := keysOf(list); !slices.Equal(got, keys) {
		t.Fatalf("list %q, want %q", got, keys)
	}
}

func testBucketNested(t *testing.T, b tiers.Bucket) {
	mustPut(t, b, "a", []byte("1"), absent)
	mustPut(t, b, "a/b", []byte("2"), absent)
	holds(t, b, "a/b", []byte("2"))
	no(t, b.Delete(t.Context(), "a"))
	holds(t, b, "a/b", []byte("2"))
}

func testBucketBadInput(t *testing.T, b tiers.Bucket) {
	ctx := t.Context()
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../../b", "a/./b", `a\b`, "a\x00", "a\nb", "\xff",
		strings.Repeat("n", 256), strings.Repeat("n/", 512) + "n",
	} {
		_, err := b.Put(ctx, key, []byte("x"), anyway)
		want(t, err, tiers.ErrInvalid)
		_, _, err = b.Get(ctx, key, 0, make([]byte, 1))
		want(t, err, tiers.ErrInvalid)
		_, err = b.Head(ctx, key)
		want(t, err, tiers.ErrInvalid)
		want(t, b.Delete(ctx, key), tiers.ErrInvalid)
		_, err = b.Begin(ctx, key)
		want(t, err, tiers.ErrInvalid)
		_, err = b.PutPart(ctx, key, "u", 1, nil)
		want(t, err, tiers.ErrInvalid)
		_, err = b.Finish(ctx, key, "u", nil, anyway)
		want(t, err, tiers.ErrInvalid)
		want(t, b.Abort(ctx, key, "u"), tiers.ErrInvalid)
	}
	mustPut(t, b, "k", []byte("abc"), anyway)
	_, _, err := b.Get(ctx, "k", -1, make([]byte, 1))
	want(t, err, tiers.ErrInvalid)
	for _, prefix := range []string{"/", "..", "a//", "a/../"} {
		_, err = b.List(ctx, prefix, "", 1)
		want(t, err, tiers.ErrInvalid)
		_, err = b.Uploads(ctx, prefix)
		want(t, err, tiers.ErrInvalid)
	}
	for _, limit := range []int{-1, 0, tiers.PageMax + 1} {
		_, err = b.List(ctx, "", "", limit)
		want(t, err, tiers.ErrInvalid)
	}
	_, err = b.Put(ctx, "k", nil, tiers.Condition{Absent: true, Tag: "x"})
	want(t, err, tiers.ErrInvalid)
	holds(t, b, "k", []byte("abc"))
}

func testBucketCRC(t *testing.T, b tiers.Bucket) {
	body := pattern(5000, 9)
	o := mustPut(t, b, "k", body, anyway)
	sum := crc32.Checksum(body, table)
	head := holds(t, b, "k", body)
	_, get, err := b.Get(t.Context(), "k", 0, make([]byte, len(body)))
	no(t, err)
	for _, o := range []tiers.Object{o, head, get} {
		if !o.HasCRC || o.CRC != sum {
			t.Fatalf("%+v, want the CRC %08x", o, sum)
		}
	}
}

func testBucketLarge(t *testing.T, b tiers.Bucket) {
	body := pattern(20<<20, 4)
	mustPut(t, b, "large", body, absent)
	holds(t, b, "large", body)
	p := make([]byte, 1<<20)
	n, _, err := b.Get(t.Context(), "large", 13<<20+17, p)
	if err != nil || n != len(p) || !bytes.Equal(p, body[13<<20+17:14<<20+17]) {
		t.Fatalf("a range of a large object: %d, %v", n, err)
	}
}

func testBucketCanceled(t *testing.T, b tiers.Bucket) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Put(ctx, "k", []byte("x"), anyway)
	want(t, err, context.Canceled)
	_, err = b.Head(ctx, "k")
	want(t, err, context.Canceled)
	missing(t, b, "k")
}

// together runs f in n goroutines and returns how often it succeeded; other errors than those allowed
// fail the test.
func together(t *testing.T, n int, f func(i int) error, allowed ...error) (winner, wins int) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
			winner = i
			wins++
		case !slices.ContainsFunc(allowed, func(e error) bool { return errors.Is(err, e) }):
			t.Errorf("%d: %v", i, err)
		}
	}
	return winner, wins
}

// racers is how many clients meet in a race, races how often.
const (
	racers = 8
	races  = 10
)

func testBucketRace(t *testing.T, b tiers.Bucket) {
	for race := range races {
		key := fmt.Sprintf("race/%d", race)
		winner, wins := together(t, racers, func(i int) error {
			_, err := b.Put(t.Context(), key, pattern(1000, i), absent)
			return err
		}, tiers.ErrPrecondition, tiers.ErrConflict)
		if wins != 1 {
			t.Fatalf("%d of %d puts of an absent object won", wins, racers)
		}
		holds(t, b, key, pattern(1000, winner))
	}
}

func testBucketRaceSwap(t *testing.T, b tiers.Bucket) {
	tag := mustPut(t, b, "k", []byte("start"), absent).Tag
	for race := range races {
		winner, wins := together(t, racers, func(i int) error {
			_, err := b.Put(t.Context(), "k", pattern(1000, race*racers+i), tagged(tag))
			return err
		}, tiers.ErrPrecondition, tiers.ErrConflict)
		if wins != 1 {
			t.Fatalf("race %d: %d of %d swaps of one tag won", race, wins, racers)
		}
		tag = holds(t, b, "k", pattern(1000, race*racers+winner)).Tag
	}
}
