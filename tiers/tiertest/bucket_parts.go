package tiertest

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"varve/tiers"
)

func begin(t *testing.T, b tiers.Bucket, key string) string {
	t.Helper()
	id, err := b.Begin(t.Context(), key)
	no(t, err)
	if id == "" {
		t.Fatal("an upload without a name")
	}
	return id
}

func putPart(t *testing.T, b tiers.Bucket, key, id string, number int, body []byte) tiers.Part {
	t.Helper()
	p, err := b.PutPart(t.Context(), key, id, number, body)
	no(t, err)
	if p.Number != number || p.Tag == "" || p.Bytes != int64(len(body)) || p.CRC != crc32.Checksum(body, table) {
		t.Fatalf("part %d of %d bytes: %+v", number, len(body), p)
	}
	return p
}

// uploaded wants the uploads of a prefix to be these, by id.
func uploaded(t *testing.T, b tiers.Bucket, prefix string, ids ...string) {
	t.Helper()
	list, err := b.Uploads(t.Context(), prefix)
	no(t, err)
	got := map[string]bool{}
	for _, u := range list {
		got[u.ID] = true
	}
	for _, id := range ids {
		if !got[id] {
			t.Fatalf("uploads of %q: %+v, want %q in it", prefix, list, id)
		}
	}
	if len(list) != len(ids) {
		t.Fatalf("uploads of %q: %+v, want %q", prefix, list, ids)
	}
}

// testBucketParts uploads parts out of order, one of them twice.
func testBucketParts(t *testing.T, b tiers.Bucket) {
	one, two, three := pattern(tiers.PartBytesMin, 1), pattern(tiers.PartBytesMin+12345, 2), pattern(777, 3)
	id := begin(t, b, "m/k")
	last := putPart(t, b, "m/k", id, 7, three)
	_ = putPart(t, b, "m/k", id, 2, pattern(100, 5))
	second := putPart(t, b, "m/k", id, 2, two)
	first := putPart(t, b, "m/k", id, 1, one)
	missing(t, b, "m/k")
	list, err := b.List(t.Context(), "", "", tiers.PageMax)
	no(t, err)
	if len(list) != 0 {
		t.Fatalf("an unfinished upload lists %+v", list)
	}
	o, err := b.Finish(t.Context(), "m/k", id, []tiers.Part{first, second, last}, anyway)
	no(t, err)
	body := bytes.Join([][]byte{one, two, three}, nil)
	if head := holds(t, b, "m/k", body); o.Key != "m/k" || o.Tag != head.Tag || o.Bytes != head.Bytes {
		t.Fatalf("finish answers %+v, head %+v", o, head)
	}
	p := make([]byte, 200) // over the seam of two parts
	n, _, err := b.Get(t.Context(), "m/k", tiers.PartBytesMin-100, p)
	if err != nil || n != len(p) || !bytes.Equal(p, body[tiers.PartBytesMin-100:tiers.PartBytesMin+100]) {
		t.Fatalf("a range over two parts: %d, %v", n, err)
	}
	uploaded(t, b, "")
	// One part, which may be as small as it likes.
	id = begin(t, b, "small")
	part := putPart(t, b, "small", id, 1, []byte("x"))
	_, err = b.Finish(t.Context(), "small", id, []tiers.Part{part}, anyway)
	no(t, err)
	holds(t, b, "small", []byte("x"))
}

func testBucketPartsConditions(t *testing.T, b tiers.Bucket) {
	finish := func(body string, cond tiers.Condition) (tiers.Object, error) {
		id := begin(t, b, "k")
		part := putPart(t, b, "k", id, 1, []byte(body))
		o, err := b.Finish(t.Context(), "k", id, []tiers.Part{part}, cond)
		if err != nil {
			no(t, b.Abort(t.Context(), "k", id))
		}
		return o, err
	}
	_, err := finish("zero", tagged(`"d41d8cd98f00b204e9800998ecf8427e"`))
	want(t, err, tiers.ErrNotFound)
	missing(t, b, "k")
	first, err := finish("first", absent)
	no(t, err)
	_, err = finish("second", absent)
	want(t, err, tiers.ErrPrecondition)
	holds(t, b, "k", []byte("first"))
	_, err = finish("second", tagged(first.Tag))
	no(t, err)
	_, err = finish("third", tagged(first.Tag))
	want(t, err, tiers.ErrPrecondition)
	holds(t, b, "k", []byte("second"))
	uploaded(t, b, "")
}

// testBucketPartsRefused finishes with part lists that must be refused.
func testBucketPartsRefused(t *testing.T, b tiers.Bucket) {
	ctx := t.Context()
	id := begin(t, b, "k")
	big := putPart(t, b, "k", id, 1, pattern(tiers.PartBytesMin, 1))
	small := putPart(t, b, "k", id, 2, []byte("small"))
	last := putPart(t, b, "k", id, 3, []byte("last"))
	other := small
	other.Tag = big.Tag
	unknown := big
	unknown.Number = 9
	for _, parts := range [][]tiers.Part{
		nil, {small, big}, {big, big}, {unknown}, {big, other}, {small, last}, {{Number: 0, Tag: big.Tag, Bytes: big.Bytes}},
	} {
		if _, err := b.Finish(ctx, "k", id, parts, anyway); !errors.Is(err, tiers.ErrInvalid) {
			t.Fatalf("parts %+v: error %v, want %v", parts, err, tiers.ErrInvalid)
		}
	}
	_, err := b.PutPart(ctx, "k", id, 1, nil)
	want(t, err, tiers.ErrInvalid)
	for _, number := range []int{-1, 0, tiers.PartsMax + 1} {
		_, err := b.PutPart(ctx, "k", id, number, []byte("x"))
		want(t, err, tiers.ErrInvalid)
	}
	// A part that was replaced has another tag.
	_ = putPart(t, b, "k", id, 3, []byte("replaced"))
	_, err = b.Finish(ctx, "k", id, []tiers.Part{big, last}, anyway)
	want(t, err, tiers.ErrInvalid)
	missing(t, b, "k")
	no(t, b.Abort(ctx, "k", id))
	// Not all parts need be used.
	id = begin(t, b, "k")
	_ = putPart(t, b, "k", id, 1, []byte("unused"))
	part := putPart(t, b, "k", id, 2, []byte("used"))
	_, err = b.Finish(ctx, "k", id, []tiers.Part{part}, anyway)
	no(t, err)
	holds(t, b, "k", []byte("used"))
}

func testBucketAborted(t *testing.T, b tiers.Bucket) {
	ctx := t.Context()
	id := begin(t, b, "k")
	part := putPart(t, b, "k", id, 1, []byte("x"))
	gone := func(key, id string) {
		t.Helper()
		_, err := b.PutPart(ctx, key, id, 2, []byte("y"))
		want(t, err, tiers.ErrNoUpload)
		_, err = b.Finish(ctx, key, id, []tiers.Part{part}, anyway)
		want(t, err, tiers.ErrNoUpload)
		no(t, b.Abort(ctx, key, id))
	}
	gone("other", id) // an upload belongs to its key
	no(t, b.Abort(ctx, "k", id))
	gone("k", id)
	gone("k", "../../../k")
	missing(t, b, "k")
	uploaded(t, b, "")
}

// testBucketFinished goes on with an upload that is over.
func testBucketFinished(t *testing.T, b tiers.Bucket) {
	ctx := t.Context()
	id := begin(t, b, "k")
	parts := []tiers.Part{putPart(t, b, "k", id, 1, []byte("x"))}
	first, err := b.Finish(ctx, "k", id, parts, anyway)
	no(t, err)
	if o, err := b.Finish(ctx, "k", id, parts, anyway); err == nil && o.Tag != first.Tag {
		t.Fatalf("finished again: %+v, first %+v", o, first)
	} else if err != nil {
		want(t, err, tiers.ErrNoUpload)
	}
	_, err = b.PutPart(ctx, "k", id, 2, []byte("y"))
	want(t, err, tiers.ErrNoUpload)
	no(t, b.Abort(ctx, "k", id))
	holds(t, b, "k", []byte("x"))
	mustPut(t, b, "k", []byte("newer"), anyway)
	if o, err := b.Finish(ctx, "k", id, parts, anyway); err == nil {
		t.Fatalf("finished again after the object was replaced: %+v", o)
	}
	holds(t, b, "k", []byte("newer"))
	no(t, b.Delete(ctx, "k"))
	if o, err := b.Finish(ctx, "k", id, parts, anyway); err == nil {
		t.Fatalf("finished again after the object was deleted: %+v", o)
	}
	missing(t, b, "k")
	uploaded(t, b, "")
}

func testBucketUploads(t *testing.T, b tiers.Bucket) {
	one := begin(t, b, "a/1")
	two := begin(t, b, "a/2")
	again := begin(t, b, "a/1")
	other := begin(t, b, "b")
	if one == again {
		t.Fatal("two uploads with one name")
	}
	_ = putPart(t, b, "a/2", two, 1, []byte("x"))
	uploaded(t, b, "", one, two, again, other)
	uploaded(t, b, "a/", one, two, again)
	uploaded(t, b, "a/2", two)
	uploaded(t, b, "c")
	for _, u := range []tiers.Upload{{Key: "a/1", ID: one}, {Key: "a/1", ID: again}, {Key: "a/2", ID: two}, {Key: "b", ID: other}} {
		no(t, b.Abort(t.Context(), u.Key, u.ID))
	}
	uploaded(t, b, "")
}

func testBucketRaceFinish(t *testing.T, b tiers.Bucket) {
	for race := range races {
		var ids [racers]string
		var parts [racers]tiers.Part
		key := string(rune('a' + race))
		for i := range racers {
			ids[i] = begin(t, b, key)
			parts[i] = putPart(t, b, key, ids[i], 1, pattern(1000, i))
		}
		winner, wins := together(t, racers, func(i int) error {
			_, err := b.Finish(t.Context(), key, ids[i], []tiers.Part{parts[i]}, absent)
			return err
		}, tiers.ErrPrecondition, tiers.ErrConflict)
		if wins != 1 {
			t.Fatalf("%d of %d uploads to an absent object won", wins, racers)
		}
		holds(t, b, key, pattern(1000, winner))
		for i := range racers {
			no(t, b.Abort(t.Context(), key, ids[i]))
		}
	}
}
