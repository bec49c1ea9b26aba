package scrub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"varve/core/manifest"
	"varve/core/segment"
	"varve/tiers"
)

// Logs returns the prefixes below which there are objects of logs.
func Logs(ctx context.Context, b tiers.Bucket) ([]string, error) {
	found := map[string]bool{}
	for after := ""; ; {
		page, err := b.List(ctx, "", after, tiers.PageMax)
		if err != nil {
			return nil, err
		}
		for i := range page {
			after = page[i].Key
			if prefix, ok := prefixOf(after); ok {
				found[prefix] = true
			}
		}
		if len(page) < tiers.PageMax {
			break
		}
	}
	all := make([]string, 0, len(found))
	for prefix := range found {
		all = append(all, prefix)
	}
	slices.Sort(all)
	return all, nil
}

// prefixOf returns the prefix of the log that a key is one of.
func prefixOf(k string) (string, bool) {
	cut := strings.LastIndexByte(k, '/') + 1
	if k[cut:] != manifest.ManifestKey {
		cut = strings.LastIndexByte(k[:max(0, cut-1)], '/') + 1 // segments/ or pages/
	}
	_, ok := manifest.ParseKey(k[cut:])
	return k[:cut], ok
}

// noManifest is what is found where there is no manifest at all.
const noManifest = "none"

// loadManifest reads the manifest; it is nil, and state says why, where there is none that verifies.
func loadManifest(ctx context.Context, b tiers.Bucket, prefix string) (m *manifest.Manifest, state finding, err error) {
	state = finding{name: Manifest, expected: "a manifest that verifies"}
	text, err := readAll(ctx, b, prefix+manifest.ManifestKey, 4096)
	switch {
	case errors.Is(err, tiers.ErrNotFound):
		state.found = noManifest
		return nil, state, nil
	case errors.Is(err, tiers.ErrCorrupt):
		state.found = "bytes without the checksum that the bucket keeps"
		return nil, state, nil
	case err != nil:
		return nil, state, err
	}
	m = new(manifest.Manifest)
	if err := manifest.Parse(text, m); err != nil {
		if errors.Is(err, manifest.ErrNewer) {
			return nil, state, fmt.Errorf("%s%s: %w: use a newer varve", prefix, manifest.ManifestKey, err)
		}
		state.found = err.Error()
		return nil, state, nil
	}
	return m, finding{}, nil
}

// readAll reads an object of some bytes, or more.
func readAll(ctx context.Context, b tiers.Bucket, k string, size int64) ([]byte, error) {
	for {
		buf := make([]byte, size+1)
		n, o, err := b.Get(ctx, k, 0, buf)
		switch {
		case err != nil:
			return nil, err
		case o.Bytes > manifest.BytesMax:
			return nil, fmt.Errorf("%s has %d bytes, more than any manifest or page", k, o.Bytes)
		case o.Bytes <= int64(n):
			return buf[:n], nil
		}
		size = o.Bytes
	}
}

// readHeader reads the header of an object, nil if it does not verify or the object is gone.
func readHeader(ctx context.Context, b tiers.Bucket, k string) (*segment.Header, error) {
	var buf [segment.HeaderBytes]byte
	n, _, err := b.Get(ctx, k, 0, buf[:])
	if errors.Is(err, tiers.ErrNotFound) || errors.Is(err, tiers.ErrCorrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	h, _, verdict, _ := segment.ReadHeader(buf[:n])
	if verdict != segment.HeaderGood {
		return nil, nil
	}
	return &h, nil
}
