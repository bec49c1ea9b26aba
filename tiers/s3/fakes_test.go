package s3_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"varve/tiers"
	"varve/tiers/s3"
	"varve/tiers/s3/s3test"
	"varve/tiers/tiertest"
)

var places atomic.Int64

// openFake opens a bucket in a server in process, under a prefix of its own.
func openFake(t *testing.T, o s3.Options) *s3.Bucket {
	t.Helper()
	o.Bucket, o.PathStyle, o.Region = "b", true, "us-east-1"
	o.AccessKey, o.SecretKey = "access", "secret"
	o.Prefix = fmt.Sprintf("fake-%d/log", places.Add(1))
	if o.Endpoint == "" {
		o.Endpoint = "http://in-process"
	}
	b, err := s3.Open(t.Context(), o)
	must(t, err)
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fakes are the servers in process. Their traits are what the handler before them cannot mend.
var fakes = []struct {
	name   string
	make   func(bucket string) (http.Handler, error)
	raw    func(bucket string) (http.Handler, error)
	traits tiertest.BucketTraits
}{
	{"Gofakes3", s3test.Gofakes3, s3test.RawGofakes3, tiertest.BucketTraits{NoCRC: true}},
	{"Rclone", s3test.Rclone, s3test.RawRclone, tiertest.BucketTraits{NoCRC: true, AfterExists: true}},
}

// TestContractOnFakes runs the contract over sockets and without.
func TestContractOnFakes(t *testing.T) {
	for _, fake := range fakes {
		h, err := fake.make("b")
		must(t, err)
		t.Run(fake.name, func(t *testing.T) {
			tiertest.TestBucket(t, fake.traits, func(t *testing.T) tiers.Bucket {
				return openFake(t, s3.Options{HTTPClient: s3test.Client{Handler: h}})
			})
		})
		t.Run(fake.name+"Sockets", func(t *testing.T) {
			server := httptest.NewServer(h)
			defer server.Close()
			tiertest.TestBucket(t, fake.traits, func(t *testing.T) tiers.Bucket {
				return openFake(t, s3.Options{Endpoint: server.URL})
			})
		})
		t.Run(fake.name+"Check", func(t *testing.T) {
			must(t, openFake(t, s3.Options{HTTPClient: s3test.Client{Handler: h}}).Check(t.Context()))
		})
	}
}

// sender sends a request about one object as it is, and returns status and body.
type sender func(method string, header http.Header, body string) (int, string)

// TestKnownFlaws pins what the servers do wrong by themselves, each with what it would cost to trust
// them. A flaw that is gone makes this test fail: then the handler needs to mend one thing less.
func TestKnownFlaws(t *testing.T) {
	both := map[string]bool{"Gofakes3": true, "Rclone": true}
	flaws := []struct {
		name string
		of   map[string]bool
		has  func(ctx context.Context, b *s3.Bucket, send sender) bool
	}{
		{
			// The end of an upload replaces an object that must not be there: two writers both win.
			"If-None-Match on CompleteMultipartUpload ignored",
			map[string]bool{"Gofakes3": true},
			func(ctx context.Context, b *s3.Bucket, _ sender) bool {
				_, err := b.Put(ctx, "k", []byte("1st"), tiers.Condition{})
				_ = upload(ctx, b, tiers.Condition{Absent: true}, "second")
				head, err2 := b.Head(ctx, "k")
				return err == nil && err2 == nil && head.Bytes == 6
			},
		},
		{
			// A good object looks damaged.
			"an object that an upload replaced keeps the CRC32C of the one before",
			map[string]bool{"Gofakes3": true},
			func(ctx context.Context, b *s3.Bucket, _ sender) bool {
				_, err := b.Put(ctx, "k", []byte("1st"), tiers.Condition{})
				_ = upload(ctx, b, tiers.Condition{}, "second")
				_, _, err2 := b.Get(ctx, "k", 0, make([]byte, 8))
				return err == nil && errors.Is(err2, tiers.ErrCorrupt)
			},
		},
		{
			// A swap of a manifest that is gone looks like one that somebody else won.
			name: "FK-6 412 for If-Match without an object",
			of:   map[string]bool{"Gofakes3": true},
			has: func(ctx context.Context, b *s3.Bucket, _ sender) bool {
				_, err := b.Put(ctx, "k", nil, tiers.Condition{Tag: `"x"`})
				return errors.Is(err, tiers.ErrPrecondition)
			},
		},
		{
			// The tag of an upload that was answered is not the object's: no condition on it ever holds.
			"another ETag at the end of an upload than on the object",
			map[string]bool{"Gofakes3": true},
			func(ctx context.Context, b *s3.Bucket, _ sender) bool {
				err := upload(ctx, b, tiers.Condition{}, "x")
				return err != nil && strings.Contains(err.Error(), "the upload was gone")
			},
		},
		{
			"404 for a list of uploads where there was none", both,
			func(ctx context.Context, b *s3.Bucket, _ sender) bool {
				_, err := b.Uploads(ctx, "")
				return errors.Is(err, tiers.ErrNoUpload)
			},
		},
		{
			// A list that goes on after a key that was deleted meanwhile misses an object.
			"start-after a key that does not exist leaves out the next one",
			map[string]bool{"Rclone": true},
			func(ctx context.Context, b *s3.Bucket, _ sender) bool {
				_, err := b.Put(ctx, "k2", nil, tiers.Condition{})
				list, err2 := b.List(ctx, "", "k1", 10)
				return err == nil && err2 == nil && len(list) == 0
			},
		},
		{
			// Bytes that were damaged on the way are stored.
			name: "FK-5 a wrong CRC32C taken",
			of:   map[string]bool{"Gofakes3": true},
			has: func(_ context.Context, _ *s3.Bucket, send sender) bool {
				status, _ := send(http.MethodPut, http.Header{"X-Amz-Checksum-Crc32c": {"AAAAAA=="}}, "body")
				return status == http.StatusOK
			},
		},
		{
			name: "FK-6 If-Match on DELETE ignored",
			of:   map[string]bool{"Gofakes3": true},
			has: func(_ context.Context, _ *s3.Bucket, send sender) bool {
				send(http.MethodPut, nil, "body")
				status, _ := send(http.MethodDelete, http.Header{"If-Match": {`"x"`}}, "")
				return status == http.StatusNoContent
			},
		},
		{
			// The framing of the body is stored as if it were the body.
			"aws-chunked bodies with a trailer stored whole",
			map[string]bool{"Gofakes3": true},
			func(_ context.Context, _ *s3.Bucket, send sender) bool {
				header := http.Header{
					"Content-Encoding": {"aws-chunked"}, "X-Amz-Trailer": {"x-amz-checksum-crc32c"},
					"X-Amz-Content-Sha256": {"STREAMING-UNSIGNED-PAYLOAD-TRAILER"}, "X-Amz-Decoded-Content-Length": {"4"},
				}
				send(http.MethodPut, header, "4\r\nbody\r\n0\r\nx-amz-checksum-crc32c:AAAAAA==\r\n\r\n")
				_, body := send(http.MethodGet, nil, "")
				return strings.Contains(body, "\r\n")
			},
		},
	}
	for _, fake := range fakes {
		for _, flaw := range flaws {
			h, err := fake.raw("b")
			must(t, err)
			b := openFake(t, s3.Options{HTTPClient: s3test.Client{Handler: h}})
			send := func(method string, header http.Header, body string) (int, string) {
				r := httptest.NewRequestWithContext(t.Context(), method, "/b/raw", strings.NewReader(body))
				for name, values := range header {
					r.Header[name] = values
				}
				r.Header.Set("Content-Length", strconv.Itoa(len(body)))
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Code, w.Body.String()
			}
			if has := flaw.has(t.Context(), b, send); has != flaw.of[fake.name] {
				t.Errorf("%s: %s: %v, expected %v", fake.name, flaw.name, has, flaw.of[fake.name])
			}
		}
	}
}

// upload puts an object in one part.
func upload(ctx context.Context, b tiers.Bucket, cond tiers.Condition, body string) error {
	id, err := b.Begin(ctx, "k")
	if err != nil {
		return err
	}
	part, err := b.PutPart(ctx, "k", id, 1, []byte(body))
	if err != nil {
		return err
	}
	_, err = b.Finish(ctx, "k", id, []tiers.Part{part}, cond)
	return err
}
