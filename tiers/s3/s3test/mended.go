package s3test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// bodyMax bounds a request, which is kept in memory.
const bodyMax = 256 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mended is a server made to behave as S3 does where it does not by itself. What it corrects is pinned
// in the tests of package s3, by name.
type mended struct {
	mu   sync.Mutex // one request at a time: a condition and its effect are one
	next http.Handler
	// It gives a checksum that it was sent back, and does not forget it when the object is replaced.
	keepsSums bool
}

// fault is an answer of S3.
type fault struct {
	status int
	code   string
}

func (m *mended) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if err != nil {
		refuse(w, r, fault{http.StatusBadRequest, "IncompleteBody"})
		return
	}
	setBody(r, body)
	query := r.URL.Query()
	if f := m.check(r, body); f != nil {
		refuse(w, r, *f)
		return
	}
	if m.keepsSums {
		r.Header.Del("X-Amz-Checksum-Crc32c")
	}
	out := httptest.NewRecorder()
	m.next.ServeHTTP(out, r)
	if f := m.after(r, query, out); f != nil {
		refuse(w, r, *f)
		return
	}
	for name, values := range out.Header() {
		w.Header()[name] = values
	}
	if r.Method != http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(out.Body.Len()))
	}
	w.WriteHeader(out.Code)
	_, _ = w.Write(out.Body.Bytes())
}

func setBody(r *http.Request, body []byte) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body))) // where gofakes3 looks
}

func refuse(w http.ResponseWriter, r *http.Request, f fault) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(f.status)
	if r.Method != http.MethodHead {
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, f.code, f.code)
	}
}

// check rejects what the server would take and S3 does not.
func (m *mended) check(r *http.Request, body []byte) *fault {
	h := r.Header
	switch {
	case strings.Contains(h.Get("Content-Encoding"), "aws-chunked") || h.Get("X-Amz-Trailer") != "":
		return &fault{http.StatusNotImplemented, "NotImplemented"} // the framing would be stored
	case !sumMatches(h.Get("X-Amz-Checksum-Crc32c"), body) && r.Method == http.MethodPut:
		return &fault{http.StatusBadRequest, "BadDigest"}
	case !hashMatches(h.Get("X-Amz-Content-Sha256"), body):
		return &fault{http.StatusBadRequest, "XAmzContentSHA256Mismatch"}
	}
	conditional := h.Get("If-Match") != "" || h.Get("If-None-Match") != ""
	if conditional && r.Method != http.MethodPut && r.Method != http.MethodPost {
		return &fault{http.StatusNotImplemented, "NotImplemented"} // it would be ignored
	}
	if conditional {
		return m.condition(r)
	}
	return nil
}

func sumMatches(text string, body []byte) bool {
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, castagnoli))
	return text == "" || text == base64.StdEncoding.EncodeToString(sum)
}

func hashMatches(text string, body []byte) bool {
	sum := sha256.Sum256(body)
	return text == "" || text == "UNSIGNED-PAYLOAD" || text == hex.EncodeToString(sum[:])
}

// condition looks at a condition in the server's place.
func (m *mended) condition(r *http.Request) *fault {
	head := m.head(r)
	there := head.Code == http.StatusOK
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	r.Header.Del("If-Match")
	r.Header.Del("If-None-Match")
	switch {
	case none != "" && there:
		return &fault{http.StatusPreconditionFailed, "PreconditionFailed"}
	case match != "" && !there:
		return &fault{http.StatusNotFound, "NoSuchKey"}
	case match != "" && head.Header().Get("ETag") != match:
		return &fault{http.StatusPreconditionFailed, "PreconditionFailed"}
	}
	return nil
}

// head asks the server for the object of a request.
func (m *mended) head(r *http.Request) *httptest.ResponseRecorder {
	in := httptest.NewRequestWithContext(r.Context(), http.MethodHead, r.URL.EscapedPath(), nil)
	in.Host = r.Host
	out := httptest.NewRecorder()
	m.next.ServeHTTP(out, in)
	return out
}

// after mends the answer.
func (m *mended) after(r *http.Request, query url.Values, out *httptest.ResponseRecorder) *fault {
	switch {
	case r.Method == http.MethodPost && query.Has("uploadId") && out.Code == http.StatusOK:
		return m.nameObject(r, out)
	case r.Method == http.MethodGet && query.Has("uploads") && out.Code == http.StatusNotFound:
		// A bucket that never saw an upload.
		out.Code = http.StatusOK
		out.Body.Reset()
		out.Body.WriteString(xml.Header + `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>`)
	}
	return nil
}

// nameObject makes the end of an upload answer with the tag that the object has.
func (m *mended) nameObject(r *http.Request, out *httptest.ResponseRecorder) *fault {
	head := m.head(r)
	if head.Code != http.StatusOK {
		return &fault{http.StatusInternalServerError, "InternalError"}
	}
	var tag bytes.Buffer
	if err := xml.EscapeText(&tag, []byte(head.Header().Get("ETag"))); err != nil {
		return &fault{http.StatusInternalServerError, "InternalError"}
	}
	out.Body.Reset()
	out.Body.WriteString(xml.Header + `<CompleteMultipartUploadResult><ETag>` + tag.String() + `</ETag></CompleteMultipartUploadResult>`)
	return nil
}
