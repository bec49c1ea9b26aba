package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"varve"
)

// dribble is a reader that returns its bytes in pieces of given sizes, as a pipe may.
type dribble struct {
	data  []byte
	sizes []byte
	at    int
}

func (p *dribble) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := len(b)
	if len(p.sizes) > 0 {
		n = int(p.sizes[p.at%len(p.sizes)]) // 0, too, which a reader may return
		if p.at++; p.at > 4*len(p.sizes)+64 {
			p.sizes = nil
		}
	}
	n = copy(b, p.data[:min(n, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}

// FuzzAppendLines: however standard input arrives, the records are its lines, each in memory that no
// later read changes; a line that is too long ends it after the lines before it.
func FuzzAppendLines(f *testing.F) {
	f.Add([]byte("one\n\nthree\nlast without newline"), []byte{}, uint16(100))
	f.Add([]byte("one\ntwo\n"), []byte{1}, uint16(3))
	f.Add([]byte("a line that is too long\nb\n"), []byte{0, 7}, uint16(9))
	f.Add(bytes.Repeat([]byte("\n\x00\xff"), 200), []byte{2, 0, 200}, uint16(1))
	f.Fuzz(func(t *testing.T, in, sizes []byte, limit uint16) {
		longest := max(1, int(limit))
		want := strings.Split(string(in), "\n")
		if n := len(want); want[n-1] == "" {
			want = want[:n-1] // what ends with a newline has no line after it
		}
		tooLong := slices.IndexFunc(want, func(l string) bool { return len(l) > longest })
		if tooLong >= 0 {
			want = want[:tooLong]
		}
		r := newLineReader(&dribble{data: in, sizes: sizes}, longest)
		var got [][]byte
		var err error
		for err == nil {
			var lines [][]byte
			lines, err = r.next(t.Context())
			got = append(got, lines...)
		}
		if errors.Is(err, io.EOF) != (tooLong < 0) {
			t.Fatalf("ends with %v; the first line that is too long: %d", err, tooLong)
		}
		for !errors.Is(err, io.EOF) { // or the goroutine of each input would stay
			c := <-r.chunks
			if c.err != nil {
				break
			}
			r.free <- c.bytes
		}
		if tooLong >= 0 && !strings.HasPrefix(err.Error(), fmt.Sprintf("line %d is longer", tooLong+1)) {
			t.Fatalf("line %d is too long, and the error is %v", tooLong+1, err)
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d: %q", len(got), len(want), got)
		}
		for i := range got {
			if string(got[i]) != want[i] {
				t.Fatalf("line %d is %q, want %q", i+1, got[i], want[i])
			}
		}
	})
}

// FuzzReadJSON: what log read --json prints is one line of JSON from which the whole record can be
// told again, whatever its bytes are.
func FuzzReadJSON(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), []byte("h"), []byte("v"), int64(7), int64(1e18), byte(0))
	f.Add([]byte{0xff}, []byte{0}, []byte("<&>\u2028"), []byte{}, int64(0), int64(-1), byte(5))
	f.Add([]byte{}, []byte{}, []byte{}, []byte("\n"), int64(1<<62), int64(1<<63-1), byte(255))
	f.Fuzz(func(t *testing.T, key, value, hkey, hvalue []byte, offset, nanos int64, flags byte) {
		given := func(bit int, b []byte) []byte {
			if flags>>bit&1 != 0 {
				return nil
			}
			return b
		}
		r := varve.Record{Key: given(0, key), Value: given(1, value), Offset: offset, Epoch: uint64(nanos) ^ 77, Time: time.Unix(0, nanos)}
		for range flags >> 5 & 3 {
			r.Headers = append(r.Headers, varve.Header{Key: given(2, hkey), Value: given(3, hvalue)})
		}
		proven := flags>>4&1 != 0
		var out bytes.Buffer
		w := bufio.NewWriter(&out)
		line := jsonRecord{Headers: make([]jsonHeader, 3)} // of a record before
		if err := line.write(w, &r, proven); err != nil || w.Flush() != nil {
			t.Fatal(err)
		}
		if bytes.Count(out.Bytes(), []byte("\n")) != 1 || out.Bytes()[out.Len()-1] != '\n' {
			t.Fatalf("not one line: %q", out.Bytes())
		}
		var back jsonRecord
		d := json.NewDecoder(&out)
		d.DisallowUnknownFields()
		if err := d.Decode(&back); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339Nano, back.Time)
		if err != nil || !at.Equal(r.Time) || back.Offset != r.Offset || back.Epoch != r.Epoch || (back.Proven == nil) != proven {
			t.Fatalf("%+v became %+v, %v", r, back, err)
		}
		same(t, "key", r.Key, back.Key, back.KeyBase64)
		same(t, "value", r.Value, back.Value, back.ValueBase64)
		if len(back.Headers) != len(r.Headers) {
			t.Fatalf("%d headers became %d", len(r.Headers), len(back.Headers))
		}
		for i, h := range back.Headers {
			same(t, "header's key", append([]byte{}, r.Headers[i].Key...), h.Key, h.KeyBase64) // nil is an empty one
			same(t, "header's value", r.Headers[i].Value, h.Value, h.ValueBase64)
		}
	})
}

// same wants bytes back from the one of two fields that holds them; nil is neither.
func same(t *testing.T, what string, want []byte, text, base *string) {
	t.Helper()
	var got []byte
	switch {
	case text != nil && base != nil:
		t.Fatalf("%s: both as text and in base64", what)
	case text != nil:
		got = []byte(*text)
	case base != nil:
		var err error
		if got, err = base64.StdEncoding.DecodeString(*base); err != nil {
			t.Fatal(err)
		}
	}
	if (got == nil) != (want == nil) || !bytes.Equal(got, want) {
		t.Fatalf("%s %q became %q", what, want, got)
	}
}

// FuzzConfigFile: a file of settings is understood, and then each value comes back as the text of its
// key, or refused with a sentence that names it; an error names a line of the file.
func FuzzConfigFile(f *testing.F) {
	f.Add([]byte(allKeys))
	for _, text := range []string{
		"", "---\n", "segment_bytes: 1\n", "warm: {endpoints: [a:1]}", "a: &x [*x]", "- - -", "? {a: b}\n: c", "create: !!bool yes", "cold: !!str {}", "\xef\xbb\xbfcreate: true",
		"cold: {url: \"file:///a\\x00b\"}", "create: true\n...\n%YAML 1.2\n---\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig("FILE", b)
		if err != nil {
			var bad *fileError
			switch {
			case !strings.Contains(err.Error(), "FILE"):
				t.Fatalf("refused without the file: %v", err)
			case errors.As(err, &bad) && (bad.line < 1 || bad.line > 1+len(b)):
				t.Fatalf("line %d of %d bytes: %v", bad.line, len(b), err)
			}
			return
		}
		s := defaults()
		for name, v := range c.values {
			if err := keyNamed(name).set(s, v.text); err != nil {
				t.Fatalf("%s = %q: %v", name, v.text, err)
			}
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
