package fuzz

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"varve/core/manifest"
	"varve/core/segment"
)

// manifests are manifests with everything in them, and the texts of their pages.
func manifests() (all []*manifest.Manifest, pages [][]byte) {
	for n := range 4 {
		m := &manifest.Manifest{
			LogID: logID, Epoch: 4, Nonce: 1 << 63, Sequence: 1 << 60, Start: 5,
			Lineage: []segment.Lineage{{Epoch: 1}, {Epoch: 4, First: 20}},
		}
		for i := range segment.Offset(3 * n) {
			s := manifest.Segment{
				Base: 10 * i, End: 10*i + 10, Epoch: 4, State: manifest.Finished, Attempt: uint64(i) + 1, ID: segment.MakeID(4, 7), Bytes: 1000,
				FooterBytes: 200, CRC: 1, MinTime: -1 << 63, MaxTime: 1<<63 - 1,
			}
			if i < 2 {
				s.Epoch = 1
			}
			m.Segments = append(m.Segments, s)
			switch i {
			case 2:
				s.State, s.Attempt = manifest.Dead, 100
				m.Segments = append(m.Segments, s)
			case 3:
				m.Segments[len(m.Segments)-1] = manifest.Segment{Base: s.Base, End: s.End, Epoch: 4, State: manifest.Lost}
			case 4:
				s.State, s.Attempt = manifest.Started, 101
				m.Segments = append(m.Segments, s)
			}
		}
		var page manifest.PageText
		if text, ok := manifest.Split(m, 5, 9, &page, nil); ok {
			pages = append(pages, text)
		}
		all = append(all, m)
	}
	return all, pages
}

// FuzzManifest: a manifest or a page that parses is the one text of what it says; one that does not is
// refused by line and leaves nothing behind; memory is bounded by the text.
func FuzzManifest(f *testing.F) {
	all, pages := manifests()
	for _, m := range all {
		f.Add(manifest.Append(nil, m))
	}
	for _, p := range pages {
		f.Add(p)
		f.Add(bytes.Replace(p, []byte(`"version":1`), []byte(`"version":2`), 1))
	}
	eachForeign(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		manifestIdentity(t, b)
		if n := bytes.LastIndex(b, []byte(`"crc":"`)); n >= 0 {
			sealed := bytes.Clone(b[:n])
			manifestIdentity(t, fmt.Appendf(sealed, "\"crc\":\"%08x\"}\n", crc32.Checksum(sealed, castagnoli)))
		}
	})
}

func manifestIdentity(t *testing.T, b []byte) {
	var m manifest.Manifest
	var p manifest.PageText
	var err, pageErr error
	if n := allocated(func() {
		m, p = manifest.Manifest{}, manifest.PageText{}
		err, pageErr = manifest.Parse(b, &m), manifest.ParsePage(b, &p)
	}); n > slack+16*uint64(len(b)) {
		t.Fatalf("%d bytes allocated for a text of %d", n, len(b))
	}
	switch {
	case err == nil && pageErr == nil:
		t.Fatalf("%q is both", b)
	case err == nil:
		if again := manifest.Append(nil, &m); !bytes.Equal(again, b) {
			t.Fatalf("%s\nparses to %+v and is encoded as\n%s", b, m, again)
		}
	case pageErr == nil:
		if again := manifest.AppendPage(nil, &p); !bytes.Equal(again, b) {
			t.Fatalf("%s\nparses to %+v and is encoded as\n%s", b, p, again)
		}
	}
	for _, err := range []error{err, pageErr} {
		var bad *manifest.Error
		if err != nil && !errors.Is(err, manifest.ErrNewer) &&
			(!errors.As(err, &bad) || bad.Line < 1 || bad.Line > 1+bytes.Count(b, []byte("\n"))) {
			t.Fatalf("refused without a place: %v", err)
		}
	}
	if err != nil && (m.Epoch != 0 || len(m.Lineage)+len(m.Segments)+len(m.Pages) > 0) || pageErr != nil && len(p.Segments) > 0 {
		t.Fatalf("refused, and yet it left %+v, %+v", m, p)
	}
}

// FuzzKey: a key of an object is accepted only if it is the one key of what it says.
func FuzzKey(f *testing.F) {
	for _, key := range []string{
		"manifest.json", "pages/00000000000000000040-7.json", "segments/00000000000000000040-00000000000000000050-0000000a-12.seg",
		"segments/../manifest.json", "pages/00000000000000000040-07.json", "segments/04611686018427387904-04611686018427387905-00000001-1.seg",
	} {
		f.Add(key)
	}
	eachForeign(f, func(b []byte) { f.Add(string(b)) })
	f.Fuzz(func(t *testing.T, key string) {
		k, ok := manifest.ParseKey(key)
		if !ok {
			return
		}
		again := manifest.ManifestKey
		switch k.Kind {
		case manifest.KeyPage:
			again = string((&manifest.Page{Base: k.Base, Number: k.Number}).AppendKey(nil))
		case manifest.KeySegment:
			s := manifest.Segment{Base: k.Base, End: k.End, Epoch: k.Epoch, Attempt: k.Attempt}
			again = string(s.AppendKey(nil))
		}
		if again != key {
			t.Fatalf("%q is read as %+v, whose key is %q", key, k, again)
		}
	})
}
