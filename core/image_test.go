package core_test

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"varve/core"
	"varve/core/segment"
)

// image is a directory between two lives, for tests to spoil.
type image []savedFile

// imageOf returns a copy of what the rig's disk holds.
func imageOf(r *rig) image { return image(r.files()) }

func (m image) index(name string) int {
	for i := range m {
		if m[i].name == name {
			return i
		}
	}
	return -1
}

// get returns a file, nil if there is none.
func (m image) get(name string) *savedFile {
	if i := m.index(name); i >= 0 {
		return &m[i]
	}
	return nil
}

// with returns the image with a file put in or replaced.
func (m image) with(name string, data []byte) image {
	out := m.without(name)
	return append(out, savedFile{name, append([]byte(nil), data...)})
}

// without returns the image without some files.
func (m image) without(names ...string) image {
	var out image
next:
	for _, f := range m {
		for _, n := range names {
			if f.name == n {
				continue next
			}
		}
		out = append(out, savedFile{f.name, append([]byte(nil), f.data...)})
	}
	return out
}

// edited returns the image with one file changed.
func (m image) edited(name string, edit func(b []byte) []byte) image {
	return m.with(name, edit(append([]byte(nil), m.get(name).data...)))
}

// flipped returns the image with a bit of one byte flipped.
func (m image) flipped(name string, pos int64) image {
	return m.edited(name, func(b []byte) []byte { b[pos] ^= 4; return b })
}

// cut returns the image with one file cut at a position.
func (m image) cut(name string, pos int64) image {
	return m.edited(name, func(b []byte) []byte { return b[:pos] })
}

// reseal puts the right checksum at the end of the first n bytes.
func reseal(b []byte, n int) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	binary.LittleEndian.PutUint32(b[n-4:], crc32.Checksum(b[:n-4], table))
	return b
}

// batches returns the batches of one segment file that verify.
func (m image) batches(t *testing.T, name string) (list []place) {
	t.Helper()
	w := flipWorld{cfg: tableConfig()}
	for _, p := range w.places(t, m.get(name)) {
		if p.batch {
			list = append(list, p)
		}
	}
	return list
}

// tableConfig is what the verdict table's logs run with.
func tableConfig() core.Config {
	cfg := smokeConfig()
	cfg.Preallocate = false
	cfg.SegmentBytes, cfg.MaxBatchBytes, cfg.PendingBytes = 64<<10, 8192, 1<<20
	return cfg
}

// put appends records [from, to), each a batch of its own of about bytes bytes, none of them zero
// behind the number.
func (r *rig) put(from, to, bytes int) {
	r.t.Helper()
	for i := from; i < to; i++ {
		b := batchOf(i)
		for len(b.Payload) < bytes {
			b.Payload = append(b.Payload, 1+byte(len(b.Payload)%200))
		}
		b.PayloadCRC = segment.PayloadCRC(b.Payload)
		if _, err := r.log.Append(r.now, &b); err != nil {
			r.t.Fatal(err)
		}
		r.pump()
	}
}

// crashed is a first life of n records, a commit each, that died: the last one is above evidence.
func crashed(t *testing.T, cfg core.Config, n, bytes int) image {
	t.Helper()
	r := newRig(t)
	r.open(cfg)
	r.put(0, n, bytes)
	r.kill()
	return imageOf(r)
}

// rolled is a life of three sealed segments of two records each, closed cleanly.
func rolled(t *testing.T) image {
	t.Helper()
	r := newRig(t)
	r.open(tableConfig())
	for i := range 3 {
		r.put(2*i, 2*i+2, 20)
		if err := r.log.Roll(r.now); err != nil {
			t.Fatal(err)
		}
		r.pump()
	}
	r.close()
	return imageOf(r)
}

func segName(base core.Offset, epoch core.Epoch, n uint32) string {
	return segment.Name(base, segment.MakeID(epoch, n))
}
