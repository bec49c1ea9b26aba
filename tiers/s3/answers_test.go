package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"varve/tiers"
)

// answers is a server that answers each request with the next of a list, and keeps what was asked.
type answers struct {
	list  []answer
	asked []*http.Request
	wait  time.Duration
	hold  bool // do not read bodies
}

type answer struct {
	status int
	header http.Header
	body   string
	length int64 // 0: that of the body
	err    error
}

// Do implements HTTPClient.
func (a *answers) Do(r *http.Request) (*http.Response, error) {
	a.asked = append(a.asked, r)
	if r.Body != nil && !a.hold {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
	}
	if a.wait > 0 {
		select {
		case <-time.After(a.wait):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	x := a.list[min(len(a.asked), len(a.list))-1]
	if x.err != nil {
		return nil, x.err
	}
	if x.length == 0 {
		x.length = int64(len(x.body))
	}
	header := http.Header{}
	for name, values := range x.header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	if x.length >= 0 {
		header.Set("Content-Length", fmt.Sprint(x.length))
	}
	return &http.Response{
		Status: http.StatusText(x.status), StatusCode: x.status, Header: header, ContentLength: x.length, Request: r,
		Body: io.NopCloser(strings.NewReader(x.body)),
	}, nil
}

func answering(t *testing.T, list ...answer) (*Bucket, *answers) {
	t.Helper()
	a := &answers{list: list}
	b, err := Open(t.Context(), Options{
		Bucket: "bucket", Prefix: "pre/fix", Endpoint: "http://in-process", PathStyle: true, AccessKey: "access", SecretKey: "secret",
		HTTPClient: a,
	})
	must(t, err)
	return b, a
}

func failed(code string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code + `</Code><Message>text</Message></Error>`
}

// TestErrors: each answer is the error of the seam that it stands for, and never asked for twice.
func TestErrors(t *testing.T) {
	unknown := errors.New("effect unknown")
	tests := []struct {
		status int
		code   string
		want   error
	}{
		{404, "NoSuchKey", tiers.ErrNotFound},
		{404, "NoSuchUpload", tiers.ErrNoUpload},
		{404, "NoSuchBucket", tiers.ErrInvalid},
		{412, "PreconditionFailed", tiers.ErrPrecondition},
		{409, "ConditionalRequestConflict", tiers.ErrConflict},
		{409, "OperationAborted", tiers.ErrConflict},
		{403, "AccessDenied", tiers.ErrDenied},
		{403, "InvalidAccessKeyId", tiers.ErrDenied},
		{403, "SignatureDoesNotMatch", tiers.ErrDenied},
		{403, "RequestTimeTooSkewed", tiers.ErrDenied},
		{400, "ExpiredToken", tiers.ErrDenied},
		{400, "AuthorizationHeaderMalformed", tiers.ErrDenied},
		{301, "PermanentRedirect", tiers.ErrInvalid},
		{400, "EntityTooSmall", tiers.ErrInvalid},
		{400, "InvalidPart", tiers.ErrInvalid},
		{400, "InvalidPartOrder", tiers.ErrInvalid},
		{501, "NotImplemented", tiers.ErrInvalid},
		{503, "SlowDown", tiers.ErrThrottled},
		{503, "ServiceUnavailable", tiers.ErrThrottled},
		{429, "TooManyRequests", tiers.ErrThrottled},
		{400, "BadDigest", unknown},
		{400, "RequestTimeout", unknown},
		{500, "InternalError", unknown},
		{404, "", tiers.ErrNotFound},
		{412, "", tiers.ErrPrecondition},
		{403, "", tiers.ErrDenied},
		{503, "", tiers.ErrThrottled},
		{500, "", unknown},
		{502, "", unknown},
		{504, "", unknown},
		{400, "", unknown},
	}
	named := []error{
		tiers.ErrNotFound, tiers.ErrNoUpload, tiers.ErrPrecondition, tiers.ErrConflict, tiers.ErrDenied, tiers.ErrInvalid,
		tiers.ErrThrottled, tiers.ErrCorrupt,
	}
	for _, tt := range tests {
		body := failed(tt.code)
		if tt.code == "" {
			body = "<html>a proxy says no</html>"
		}
		b, a := answering(t, answer{status: tt.status, body: body})
		parts := []tiers.Part{{Number: 1, Tag: "x", Bytes: 1}}
		calls := map[string]func(ctx context.Context) error{
			"put":   func(ctx context.Context) error { _, err := b.Put(ctx, "k", []byte("x"), tiers.Condition{}); return err },
			"begin": func(ctx context.Context) error { _, err := b.Begin(ctx, "k"); return err },
			"part":  func(ctx context.Context) error { _, err := b.PutPart(ctx, "k", "u", 1, []byte("x")); return err },
			"finish": func(ctx context.Context) error {
				_, err := b.Finish(ctx, "k", "u", parts, tiers.Condition{Absent: true})
				return err
			},
			"get":     func(ctx context.Context) error { _, _, err := b.Get(ctx, "k", 0, make([]byte, 1)); return err },
			"list":    func(ctx context.Context) error { _, err := b.List(ctx, "", "", 1); return err },
			"uploads": func(ctx context.Context) error { _, err := b.Uploads(ctx, ""); return err },
		}
		for name, call := range calls {
			a.asked = nil
			err := call(t.Context())
			if err == nil {
				t.Errorf("%s, %d %s: no error", name, tt.status, tt.code)
				continue
			}
			for _, e := range named {
				if errors.Is(err, e) != errors.Is(tt.want, e) {
					t.Errorf("%s, %d %s: error %v, want %v", name, tt.status, tt.code, err, tt.want)
				}
			}
			if !strings.Contains(err.Error(), "bucket/pre/fix at http://in-process") {
				t.Errorf("%s: the error %q does not name the place", name, err)
			}
			if len(a.asked) != 1 {
				t.Errorf("%s, %d %s: %d requests", name, tt.status, tt.code, len(a.asked))
			}
		}
	}
}

// TestErrorsInGoodAnswers: an answer with status 200 may hold an error, or nothing.
func TestErrorsInGoodAnswers(t *testing.T) {
	parts := []tiers.Part{{Number: 1, Tag: "x", Bytes: 1}}
	for body, want := range map[string]error{
		failed("InternalError"): nil, failed("SlowDown"): tiers.ErrThrottled, failed("PreconditionFailed"): tiers.ErrPrecondition,
		"": nil, "   \n\n": nil, "<html></html>": nil, "<CompleteMultipartUploadResult>": nil,
		"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>": nil,
	} {
		b, a := answering(t, answer{status: 200, body: body})
		o, err := b.Finish(t.Context(), "k", "u", parts, tiers.Condition{})
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("finish with the body %q: %+v, %v", body, o, err)
		}
		if len(a.asked) != 1 {
			t.Errorf("finish with the body %q: %d requests", body, len(a.asked))
		}
	}
	b, _ := answering(t, answer{status: 200})
	if o, err := b.Put(t.Context(), "k", nil, tiers.Condition{}); err == nil {
		t.Errorf("put answered without a tag: %+v", o)
	}
	if id, err := b.Begin(t.Context(), "k"); err == nil {
		t.Errorf("begin answered without an id: %q", id)
	}
	b, _ = answering(t, answer{status: 200, header: http.Header{"ETag": {`"x"`}, "x-amz-checksum-crc32c": {"AAAAAA=="}}})
	if o, err := b.Put(t.Context(), "k", []byte("x"), tiers.Condition{}); err == nil || !strings.Contains(err.Error(), "00000000") {
		t.Errorf("put answered with another checksum: %+v, %v", o, err)
	}
}

// TestBodies: what comes back is what was asked for, or an error.
func TestBodies(t *testing.T) {
	const text = "0123456789"
	sum := encodeCRC(crc32.Checksum([]byte(text), castagnoli))
	head := func(more ...string) http.Header {
		h := http.Header{"ETag": {`"x"`}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	tests := []struct {
		name string
		pos  int64
		size int
		a    answer
		want string // "" is an error
	}{
		{"right", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-4/10"), body: "234"}, "234"},
		{"to the end", 8, 5, answer{status: 206, header: head("Content-Range", "bytes 8-9/10"), body: "89"}, "89"},
		{"whole, as asked", 0, 20, answer{status: 200, header: head(), body: text}, text},
		{"whole, checked", 0, 10, answer{status: 206, header: head("Content-Range", "bytes 0-9/10", "x-amz-checksum-crc32c", sum), body: text}, text},
		{"whole for a range", 2, 3, answer{status: 200, header: head(), body: text}, ""},
		{"whole for a prefix", 0, 3, answer{status: 200, header: head(), body: text}, ""},
		{"cut", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-4/10"), body: "23", length: 3}, ""},
		{"cut at once", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-4/10"), length: 3}, ""},
		{"longer", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-4/10"), body: "2345", length: 3}, ""},
		{"shorter range", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-3/10"), body: "23"}, ""},
		{"other range", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 3-5/10"), body: "345"}, ""},
		{"earlier range", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 1-4/10"), body: "1234"}, ""},
		{"range and length differ", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-4/10"), body: "2345"}, ""},
		{"bad range", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-4/*"), body: "234"}, ""},
		{"huge range", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-9223372036854775807/9223372036854775807"), body: "234"}, ""},
		{"no range", 2, 3, answer{status: 206, header: head(), body: "234"}, ""},
		{"no length", 2, 3, answer{status: 206, header: head("Content-Range", "bytes 2-4/10"), body: "234", length: -1}, ""},
		{"no tag", 2, 3, answer{status: 206, header: http.Header{"Content-Range": {"bytes 2-4/10"}}, body: "234"}, ""},
		{"checksum", 0, 10, answer{status: 206, header: head("Content-Range", "bytes 0-9/10", "x-amz-checksum-crc32c", sum), body: "0123456780"}, ""},
		{"checksum of checksums", 0, 10, answer{status: 206, header: head("Content-Range", "bytes 0-9/10", "x-amz-checksum-crc32c", "AAAAAA==-2", "x-amz-checksum-type", "COMPOSITE"), body: text}, text},
		{"connection lost", 0, 10, answer{err: &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}}, ""},
	}
	for _, tt := range tests {
		b, a := answering(t, tt.a)
		p := bytes.Repeat([]byte{'.'}, tt.size)
		n, o, err := b.Get(t.Context(), "k", tt.pos, p)
		switch {
		case tt.want == "" && (err == nil || n != 0):
			t.Errorf("%s: %q taken", tt.name, p[:n])
		case tt.want != "" && (err != nil || string(p[:n]) != tt.want || o.Bytes != 10):
			t.Errorf("%s: %q, %+v, %v", tt.name, p[:n], o, err)
		}
		if errors.Is(err, tiers.ErrCorrupt) != (tt.name == "checksum") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if len(a.asked) != 1 {
			t.Errorf("%s: %d requests", tt.name, len(a.asked))
		}
	}
}

// TestLists: a list that is not what was asked for, or does not end, is an error.
func TestLists(t *testing.T) {
	page := func(truncated bool, token string, keys ...string) answer {
		var x strings.Builder
		fmt.Fprintf(&x, "<ListBucketResult><IsTruncated>%v</IsTruncated>", truncated)
		if token != "" {
			fmt.Fprintf(&x, "<NextContinuationToken>%s</NextContinuationToken>", token)
		}
		for _, key := range keys {
			fmt.Fprintf(&x, "<Contents><Key>%s</Key><ETag>&#34;x&#34;</ETag><Size>1</Size></Contents>", key)
		}
		return answer{status: 200, body: x.String() + "</ListBucketResult>"}
	}
	good := map[string][]answer{
		"one page":    {page(false, "", "pre/fix/a", "pre/fix/b")},
		"two pages":   {page(true, "t", "pre/fix/a"), page(false, "", "pre/fix/b")},
		"empty page":  {page(true, "t"), page(false, "", "pre/fix/a", "pre/fix/b")},
		"foreign key": {page(false, "", "pre/fix/", "pre/fix/a", "pre/fix/a//", "pre/fix/b")},
	}
	for name, list := range good {
		b, a := answering(t, list...)
		out, err := b.List(t.Context(), "", "", 10)
		if err != nil || len(out) != 2 || out[0].Key != "a" || out[1].Key != "b" || len(a.asked) != len(list) {
			t.Errorf("%s: %+v, %v, %d requests", name, out, err, len(a.asked))
		}
	}
	bad := map[string][]answer{
		"outside the prefix": {page(false, "", "other/a")},
		"no order":           {page(false, "", "pre/fix/b", "pre/fix/a")},
		"twice":              {page(false, "", "pre/fix/a", "pre/fix/a")},
		"more than asked":    {page(false, "", "pre/fix/a", "pre/fix/b", "pre/fix/c", "pre/fix/d")},
		"no way on":          {page(true, "", "pre/fix/a")},
		"no end":             {page(true, "t")},
	}
	for name, list := range bad {
		b, _ := answering(t, list...)
		if out, err := b.List(t.Context(), "", "", 3); err == nil {
			t.Errorf("%s: %+v", name, out)
		}
	}
	b, _ := answering(t, page(false, "", "pre/fix/a"))
	if out, err := b.List(t.Context(), "", "a", 3); err == nil {
		t.Errorf("a server that ignores where to start: %+v", out)
	}
}

func TestTimeout(t *testing.T) {
	b, a := answering(t, answer{status: 200})
	a.wait, b.timeout = time.Minute, 20*time.Millisecond
	_, err := b.Put(t.Context(), "k", []byte("x"), tiers.Condition{})
	if !errors.Is(err, context.DeadlineExceeded) || len(a.asked) != 1 {
		t.Fatalf("%v, %d requests", err, len(a.asked))
	}
}

// TestBodyAfterTheCall: a transport that still holds a request reads nothing of what the caller's
// buffer holds by then.
func TestBodyAfterTheCall(t *testing.T) {
	b, a := answering(t, answer{err: errors.New("gave up")})
	a.hold = true
	if _, err := b.Put(t.Context(), "k", []byte("x"), tiers.Condition{}); err == nil {
		t.Fatal("no error")
	}
	r := a.asked[0]
	if p, err := io.ReadAll(r.Body); len(p) != 0 {
		t.Fatalf("the body of a call that is over reads %q, %v", p, err)
	}
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err == nil {
			_, err = io.ReadAll(body)
		}
		if err == nil {
			t.Fatal("the body of a call that is over can be had again")
		}
	}
}

// TestHeaders looks at what is sent.
func TestHeaders(t *testing.T) {
	a := &answers{list: []answer{{status: 200, header: http.Header{"ETag": {`"x"`}}}}}
	b, err := Open(t.Context(), Options{
		Bucket: "bucket", Prefix: "p", Endpoint: "https://in-process", AccessKey: "access", SecretKey: "secret",
		SSE: "aws:kms", KMSKey: "key", HTTPClient: a,
	})
	must(t, err)
	_, err = b.Put(t.Context(), "k", []byte("body"), tiers.Condition{Tag: `"tag"`})
	must(t, err)
	r := a.asked[0]
	for name, want := range map[string]string{
		"If-Match": `"tag"`, "If-None-Match": "", "X-Amz-Checksum-Crc32c": encodeCRC(crc32.Checksum([]byte("body"), castagnoli)),
		"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key",
		"X-Amz-Trailer": "", "Content-Encoding": "",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r.URL.Host != "bucket.in-process" || r.URL.Path != "/p/k" || r.ContentLength != 4 {
		t.Errorf("%s, %d bytes", r.URL, r.ContentLength)
	}
	first, second := bytes.Repeat([]byte("x"), tiers.PartBytesMin), []byte("y")
	parts := []tiers.Part{
		{Number: 1, Tag: "1", Bytes: int64(len(first)), CRC: crc32.Checksum(first, castagnoli)},
		{Number: 2, Tag: "2", Bytes: int64(len(second)), CRC: crc32.Checksum(second, castagnoli)},
	}
	_, err = b.Finish(t.Context(), "k", "u", parts, tiers.Condition{Absent: true})
	if err == nil {
		t.Error("an answer without a body was taken for the end of an upload")
	}
	r = a.asked[1]
	for name, want := range map[string]string{
		"If-Match": "", "If-None-Match": "*", "X-Amz-Checksum-Type": "FULL_OBJECT",
		"X-Amz-Checksum-Crc32c": encodeCRC(crc32.Checksum(append(first, second...), castagnoli)),
		"X-Amz-Mp-Object-Size":  fmt.Sprint(len(first) + len(second)),
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	good := Options{Bucket: "b", Endpoint: "http://h:1", AccessKey: "a", SecretKey: "s"}
	for text, change := range map[string]func(*Options){
		"bad bucket name":       func(o *Options) { o.Bucket = "a/../b" },
		"bad prefix":            func(o *Options) { o.Prefix = "../x" },
		"without a slash":       func(o *Options) { o.Prefix = "x/" },
		"bad endpoint":          func(o *Options) { o.Endpoint = "localhost:9000" },
		"without its secret":    func(o *Options) { o.SecretKey = "" },
		"unknown server-side":   func(o *Options) { o.SSE = "rot13" },
		"encryption \"aws:kmsx": func(o *Options) { o.SSE = "aws:kmsx" },
		"a KMS key with the":    func(o *Options) { o.KMSKey = "k" },
		"bad time-out":          func(o *Options) { o.Timeout = -1 },
		"no region for the buc": func(o *Options) { o.Endpoint = "" },
	} {
		o := good
		change(&o)
		if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Open(t.Context(), good); err != nil {
		t.Error(err)
	}
}

// TestNoCredentials: nothing is sent, and the next step is said.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	a := &answers{list: []answer{{status: 200}}}
	b, err := Open(t.Context(), Options{Bucket: "b", Endpoint: "http://in-process", PathStyle: true, HTTPClient: a})
	must(t, err)
	_, err = b.Put(t.Context(), "k", nil, tiers.Condition{})
	if !errors.Is(err, tiers.ErrDenied) || !strings.Contains(err.Error(), "give credentials") || len(a.asked) != 0 {
		t.Fatalf("%v, %d requests", err, len(a.asked))
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string][2]string{
		"s3://b": {"b", ""}, "s3://b/": {"b", ""}, "s3://b/p": {"b", "p"}, "s3://b/p/q/": {"b", "p/q"},
	} {
		bucket, prefix, err := ParseURL(text)
		if err != nil || bucket != want[0] || prefix != want[1] {
			t.Errorf("%s: %q, %q, %v", text, bucket, prefix, err)
		}
	}
	for _, text := range []string{"", "s3://", "s3:///p", "file:///x", "b/p", "s3://b/../x", "s3://b//x", "s3://b/x?y", "s3://b/x#y", "s3://b/a\x00"} {
		if bucket, prefix, err := ParseURL(text); err == nil {
			t.Errorf("%q: %q, %q", text, bucket, prefix)
		}
	}
}

// careless is a bucket that ignores conditions.
type careless struct{ tiers.Bucket }

func (c careless) Put(ctx context.Context, key string, p []byte, _ tiers.Condition) (tiers.Object, error) {
	return c.Bucket.Put(ctx, key, p, tiers.Condition{})
}

// carelessAtTheEnd ignores those of Finish.
type carelessAtTheEnd struct{ tiers.Bucket }

func (c carelessAtTheEnd) Finish(ctx context.Context, key, id string, parts []tiers.Part, _ tiers.Condition) (tiers.Object, error) {
	return c.Bucket.Finish(ctx, key, id, parts, tiers.Condition{})
}
