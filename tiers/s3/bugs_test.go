package s3_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"varve/tiers"
	"varve/tiers/s3"
)

// TestOS1AnswerLost: a put on condition that the key is free takes effect, and its answer is lost, on a new connection
// and on one that was used before. It is not sent again by itself, where it would meet its own object: the caller
// is told that nobody knows.
func TestOS1AnswerLost(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := requests.Add(1)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if number == 2 {
			w.Header().Set("ETag", `"x"`)
			return
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	b := openFake(t, s3.Options{Endpoint: server.URL})
	for n := int32(1); n <= 3; n++ {
		_, err := b.Put(t.Context(), fmt.Sprint("k", n), []byte("body"), tiers.Condition{Absent: true})
		if (err == nil) != (n == 2) || errors.Is(err, tiers.ErrPrecondition) || errors.Is(err, tiers.ErrNotFound) || requests.Load() != n {
			t.Fatalf("put %d: %v after %d requests", n, err, requests.Load())
		}
	}
}

// TestOS3BodyCutShort: a body that ends before its time, over a socket: the connection closed in the middle
// of what the length announced, and a body without a length that ends cleanly. No byte of it counts.
func TestOS3BodyCutShort(t *testing.T) {
	for name, header := range map[string]string{
		"closed before its length":    "HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Range: bytes 0-9/10\r\nContent-Length: 10\r\n\r\n0123",
		"no length, closed":           "HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Range: bytes 0-9/10\r\nConnection: close\r\n\r\n0123",
		"chunks, and a clean end":     "HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Range: bytes 0-9/10\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n0\r\n\r\n",
		"whole object, no length":     "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nConnection: close\r\n\r\n0123",
		"closed in the header":        "HTTP/1.1 206 Partial Content\r\nETag: \"x\"\r\nContent-Le",
		"closed before anything came": "",
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests++
			c, buffered, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, err = buffered.WriteString(header)
			if err = errors.Join(err, buffered.Flush(), c.Close()); err != nil {
				t.Error(err)
			}
		}))
		b := openFake(t, s3.Options{Endpoint: server.URL})
		p := bytes.Repeat([]byte{'.'}, 10)
		if n, o, err := b.Get(t.Context(), "k", 0, p); err == nil || n != 0 || o != (tiers.Object{}) {
			t.Errorf("%s: %q, %+v, %v", name, p[:n], o, err)
		}
		server.Close()
		if requests != 1 {
			t.Errorf("%s: %d requests", name, requests)
		}
	}
}

// TestOS4PutAgainAfterItsBodyWasRead: the first put fails after the server has read all of it. It is not
// sent again by itself, and the caller's next one sends the whole body.
func TestOS4PutAgainAfterItsBodyWasRead(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	var got [][]byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if got = append(got, p); len(got) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, "<Error><Code>SlowDown</Code></Error>")
			return
		}
		w.Header().Set("ETag", `"x"`)
	}))
	defer server.Close()
	b := openFake(t, s3.Options{Endpoint: server.URL})
	_, err := b.Put(t.Context(), "k", body, tiers.Condition{Absent: true})
	if !errors.Is(err, tiers.ErrThrottled) || len(got) != 1 {
		t.Fatalf("%v, %d requests", err, len(got))
	}
	_, err = b.Put(t.Context(), "k", body, tiers.Condition{Absent: true})
	must(t, err)
	if len(got) != 2 || !bytes.Equal(got[0], body) || !bytes.Equal(got[1], body) {
		t.Fatalf("%d requests, the last with %d bytes", len(got), len(got[len(got)-1]))
	}
}

// TestSE1KeysThatLeadElsewhere: no such key reaches the server.
func TestSE1KeysThatLeadElsewhere(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer server.Close()
	b := openFake(t, s3.Options{Endpoint: server.URL})
	for _, key := range []string{"..", "a/../b", "../../other/k", "/abs", `a\b`, "", ".", "a\x00b", strings.Repeat("n", 300)} {
		if err := b.Delete(t.Context(), key); !errors.Is(err, tiers.ErrInvalid) {
			t.Errorf("%.40q: %v", key, err)
		}
	}
	if requests != 0 {
		t.Errorf("%d requests", requests)
	}
}
