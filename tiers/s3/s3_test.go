package s3

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"testing"

	"varve/tiers"
	"varve/tiers/tiertest"
)

var prefixes atomic.Int64

// open opens a bucket under a prefix of its own.
func open(t *testing.T, o Options) *Bucket {
	t.Helper()
	o.Prefix = fmt.Sprintf("test-%d/log", prefixes.Add(1))
	b, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func serverOptions(s *tiertest.S3) Options {
	return Options{Bucket: s.Bucket, Endpoint: s.Endpoint, PathStyle: true, AccessKey: s.AccessKey, SecretKey: s.SecretKey, Region: "us-east-1"}
}

func TestContractOnServer(t *testing.T) {
	server := tiertest.StartS3(t)
	tiertest.TestBucket(t, tiertest.BucketTraits{Folders: true}, func(t *testing.T) tiers.Bucket {
		return open(t, serverOptions(server))
	})
}

func TestCheckOnServer(t *testing.T) {
	b := open(t, serverOptions(tiertest.StartS3(t)))
	if err := b.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := b.List(t.Context(), "", "", 10)
	if err != nil || len(list) != 0 {
		t.Fatalf("left behind: %v, %v", list, err)
	}
	uploads, err := b.Uploads(t.Context(), "")
	if err != nil || len(uploads) != 0 {
		t.Fatalf("left behind: %v, %v", uploads, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestServerFinishesWhatIsGone pins a trap of versitygw 1.8: it answers 200 to the end of an upload that
// was aborted, because there is some object under the key.
func TestServerFinishesWhatIsGone(t *testing.T) {
	b := open(t, serverOptions(tiertest.StartS3(t)))
	ctx := t.Context()
	id, err := b.Begin(ctx, "k")
	must(t, err)
	part, err := b.PutPart(ctx, "k", id, 1, []byte("aborted"))
	must(t, err)
	must(t, b.Abort(ctx, "k", id))
	_, err = b.Put(ctx, "k", []byte("somebody else's"), tiers.Condition{})
	must(t, err)
	_, err = b.Finish(ctx, "k", id, []tiers.Part{part}, tiers.Condition{Absent: true})
	if err == nil || !strings.Contains(err.Error(), "the upload was gone") {
		t.Fatalf("an upload that is gone was finished: %v", err)
	}
	head, err := b.Head(ctx, "k")
	if err != nil || head.Bytes != 15 {
		t.Fatalf("%+v, %v", head, err)
	}
}

// TestServerTellsChecksums: where the server tells the CRC32C of an object in parts, it is that of all
// its bytes.
func TestServerTellsChecksums(t *testing.T) {
	b := open(t, serverOptions(tiertest.StartS3(t)))
	ctx := t.Context()
	id, err := b.Begin(ctx, "k")
	must(t, err)
	bodies := [2][]byte{bytes.Repeat([]byte("0123456789abcdef"), tiers.PartBytesMin/16), []byte("the end")}
	var parts []tiers.Part
	for i, body := range bodies {
		part, err := b.PutPart(ctx, "k", id, i+1, body)
		must(t, err)
		parts = append(parts, part)
	}
	o, err := b.Finish(ctx, "k", id, parts, tiers.Condition{Absent: true})
	must(t, err)
	sum := crc32.Checksum(append(bodies[0], bodies[1]...), castagnoli)
	head, err := b.Head(ctx, "k")
	must(t, err)
	if !o.HasCRC || o.CRC != sum || head != o {
		t.Fatalf("finish %+v, head %+v, want the CRC %08x", o, head, sum)
	}
	// A part that is not what the client believes is refused by the checksum of the whole.
	id, err = b.Begin(ctx, "k")
	must(t, err)
	part, err := b.PutPart(ctx, "k", id, 1, bodies[1])
	must(t, err)
	part.CRC++
	if _, err = b.Finish(ctx, "k", id, []tiers.Part{part}, tiers.Condition{}); err == nil {
		t.Fatal("a wrong checksum was accepted")
	}
	must(t, b.Abort(ctx, "k", id))
}

// TestCheckFinds: a server that ignores a condition is found, and nothing is left of the check.
func TestCheckFinds(t *testing.T) {
	b := open(t, serverOptions(tiertest.StartS3(t)))
	for _, bad := range []tiers.Bucket{careless{b}, carelessAtTheEnd{b}} {
		err := check(t.Context(), bad)
		if err == nil || !strings.Contains(err.Error(), "does not honour conditional writes") {
			t.Errorf("%T: %v", bad, err)
		}
	}
	list, err := b.List(t.Context(), "", "", 10)
	if err != nil || len(list) != 0 {
		t.Fatalf("left behind: %v, %v", list, err)
	}
	o := serverOptions(tiertest.StartS3(t))
	o.SecretKey = "wrong"
	if err := open(t, o).Check(t.Context()); !errors.Is(err, tiers.ErrDenied) || !strings.Contains(err.Error(), "give other credentials") {
		t.Errorf("wrong credentials: %v", err)
	}
	o = serverOptions(tiertest.StartS3(t))
	o.Bucket = "no-such-bucket"
	if err := open(t, o).Check(t.Context()); !errors.Is(err, tiers.ErrInvalid) || !strings.Contains(err.Error(), "create the bucket") {
		t.Errorf("no bucket: %v", err)
	}
}
