package cold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"varve/core"
	"varve/core/manifest"
	"varve/sim/fakebucket"
	"varve/tiers"
)

// storeOn returns a store whose bucket holds one object.
func storeOn(t *testing.T, x *core.Extent, body []byte) (*Store, *fakebucket.Bucket) {
	t.Helper()
	b := fakebucket.New()
	s := NewStore(b, "log/", nil, Options{PartBytes: 1 << 20, ReadAheadBytes: 4096})
	o := x.Object()
	if _, err := b.Put(context.Background(), s.objectKey(&o), body, tiers.Condition{}); err != nil {
		t.Fatal(err)
	}
	return s, b
}

// An object that is not as long as the manifest says is an error, not a shorter log.
func TestObjectOfAnotherSize(t *testing.T) {
	for _, size := range []int64{99, 101} {
		x := &core.Extent{Base: 0, Until: 5, Epoch: 1, Attempt: 1, Bytes: size}
		s, _ := storeOn(t, x, make([]byte, 100))
		if n, err := s.OpenObject(x).ReadAt(make([]byte, 200), 0); !errors.Is(err, ErrShortObject) {
			t.Errorf("100 bytes where the manifest says %d: read %d, %v", size, n, err)
		}
	}
	x := &core.Extent{Base: 0, Until: 5, Epoch: 1, Attempt: 1, Bytes: 100}
	s, _ := storeOn(t, x, make([]byte, 100))
	if n, err := s.OpenObject(x).ReadAt(make([]byte, 200), 0); n != 100 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d, %v", n, err)
	}
}

func TestObjectsAreNeverWritten(t *testing.T) {
	x := &core.Extent{Base: 0, Until: 5, Epoch: 1, Attempt: 1, Bytes: 10}
	s, b := storeOn(t, x, make([]byte, 10))
	f := s.OpenObject(x)
	_, err := f.WriteAt([][]byte{{1}}, 0)
	for _, err := range []error{err, f.WriteZeros(0, 1), f.Truncate(0), f.Sync()} {
		if !errors.Is(err, errReadOnly) {
			t.Error(err)
		}
	}
	if b.Calls(fakebucket.OpPut) != 1 {
		t.Error("something was written")
	}
}

// An upload counts only if the bucket has what was sent: its size and its checksum.
func TestUploadIsComparedWithWhatTheBucketHas(t *testing.T) {
	for _, x := range []struct {
		name string
		o    tiers.Object
		want error
	}{
		{"the same", tiers.Object{Bytes: 10, CRC: 7, HasCRC: true}, nil},
		{"without a checksum", tiers.Object{Bytes: 10}, nil},
		{"shorter", tiers.Object{Bytes: 9, CRC: 7, HasCRC: true}, errObjectDiffers},
		{"another checksum", tiers.Object{Bytes: 10, CRC: 8, HasCRC: true}, errObjectDiffers},
	} {
		s := NewStore(fakebucket.New(), "log/", nil, DefaultOptions())
		s.up.size, s.up.crc, s.up.footer = 10, 7, 3
		e := &core.Upload{Bytes: 10}
		if err := s.finished(&core.Result{}, e, &x.o, nil); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	s := NewStore(fakebucket.New(), "log/", nil, DefaultOptions())
	s.up.size = 9
	if err := s.finished(&core.Result{}, &core.Upload{Bytes: 10}, &tiers.Object{Bytes: 9}, nil); !errors.Is(err, errObjectDiffers) {
		t.Errorf("less was sent than the object has: %v", err)
	}
}

// crcLies is a bucket that keeps a checksum of another version beside its objects, as a server does
// that dies between writing the two.
type crcLies struct{ tiers.Bucket }

func (b crcLies) Get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	n, o, err := b.Bucket.Get(ctx, key, pos, p)
	if err == nil && int64(n) == o.Bytes {
		return 0, tiers.Object{}, tiers.ErrCorrupt
	}
	return n, o, err
}

// TestManifestWithALyingChecksum: the text's own checksum decides, not what the bucket keeps beside it.
func TestManifestWithALyingChecksum(t *testing.T) {
	b := fakebucket.New()
	o, err := b.Put(t.Context(), "log/"+manifest.ManifestKey, []byte("a text"), tiers.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(crcLies{b}, "log/", nil, DefaultOptions())
	e := new(core.LoadManifest)
	if err := s.Run(e); err != nil || string(e.Bytes) != "a text" || e.Tag != o.Tag {
		t.Fatalf("%q, tag %q, error %v", e.Bytes, e.Tag, err)
	}
}

// TestAPageOfOtherKeys: without a manifest one key of a segment among others says that there is a log; a page of others
// says nothing.
func TestAPageOfOtherKeys(t *testing.T) {
	x := &core.Extent{Base: 0, Until: 5, Epoch: 1, Attempt: 1, Bytes: 10}
	s, b := storeOn(t, x, make([]byte, 10))
	look := func() (bool, error) {
		var r core.Result
		e := &core.LoadManifest{Look: true}
		err := s.loadManifest(&r, e)
		return e.Objects, err
	}
	put := func(n int) {
		for i := range n {
			if _, err := b.Put(context.Background(), fmt.Sprintf("%s%s!%04d", s.prefix, manifest.SegmentPrefix, i), nil, tiers.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(tiers.PageMax - 1)
	if there, err := look(); !there || err != nil {
		t.Errorf("%t, %v", there, err)
	}
	put(tiers.PageMax)
	if there, err := look(); there || err == nil || !strings.Contains(err.Error(), "are no objects of a log") {
		t.Errorf("a page of others: %t, %v", there, err)
	}
}
