package scrub

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"varve/core"
	"varve/core/manifest"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/cold"
	"varve/tiers/disk"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// verifier reads objects of one log. It keeps its memory from object to object.
type verifier struct {
	bucket tiers.Bucket
	prefix string
	store  *cold.Store
	scan   segment.Scanner
	info   *segment.FileInfo
	buf    []byte
}

func newVerifier(b tiers.Bucket, prefix string) *verifier {
	return &verifier{bucket: b, prefix: prefix, store: cold.NewStore(b, prefix, nil, cold.DefaultOptions())}
}

// finding is what is wrong with an object. An empty name is nothing.
type finding struct {
	name            string
	expected, found string
}

// key returns the key of an object below the prefix of its log.
func key(s *manifest.Segment) string { return string(s.AppendKey(nil)) }

// object reads an object whole, batch by batch, and compares it with what the manifest says. An error
// is one of the bucket: nothing is known then.
func (v *verifier) object(ctx context.Context, log segment.LogID, s *manifest.Segment) (finding, error) {
	got, f, err := v.read(ctx, log, s, s.Bytes, s.FooterBytes)
	if err != nil || f.name != "" {
		return f, err
	}
	is := *s
	is.State = got.State
	if got != is {
		return different(s, &got), nil
	}
	return finding{}, nil
}

// read describes an object from its bytes alone, as a manifest would, and says what is wrong with it.
func (v *verifier) read(ctx context.Context, log segment.LogID, s *manifest.Segment, size, footer int64) (manifest.Segment, finding, error) {
	x := core.Extent{Base: s.Base, Until: s.End, Epoch: s.Epoch, Attempt: s.Attempt, Bytes: size, FooterBytes: footer}
	r := &summing{file: v.store.OpenObject(&x), ctx: ctx}
	appended, err := v.walk(&segment.ScanFile{
		Source: r, Bytes: size, ID: s.ID, Base: s.Base, LogID: log, SectorBytes: segment.SectorBytesMin,
	})
	if err == nil {
		v.buf, err = r.rest(size, v.buf)
	}
	none := manifest.Segment{}
	switch {
	case errors.Is(err, cold.ErrShortObject):
		return none, v.size(ctx, s, size), nil
	case errors.Is(err, disk.ErrNotExist):
		return none, finding{name: Missing, expected: "an object that the manifest lists", found: "none"}, nil
	case errors.Is(err, tiers.ErrCorrupt):
		return none, finding{name: Checksum, expected: "bytes with the checksum that the bucket keeps", found: "others"}, nil
	case err != nil:
		return none, finding{}, err
	}
	if f := v.judge(s); f.name != "" {
		return none, f, nil
	}
	run := &v.info.Runs[0]
	return manifest.Segment{
		Base: s.Base, End: run.End, Epoch: v.info.Header.Epoch, State: manifest.Finished, Attempt: s.Attempt, ID: v.info.Header.ID,
		Bytes: size, FooterBytes: size - roundUp(v.info.Footer.DataEnd), CRC: r.crc, MinTime: run.MinTime, MaxTime: run.MaxTime, AppendTime: appended,
	}, finding{}, nil
}

func roundUp(n int64) int64 { return (n + segment.SectorBytesMin - 1) &^ (segment.SectorBytesMin - 1) }

// walk verifies every batch, and returns the greatest append time.
func (v *verifier) walk(f *segment.ScanFile) (appended segment.Time, err error) {
	if err := v.scan.Start(f); err != nil {
		return 0, err
	}
	var b segment.Batch
	for more := true; more && err == nil; {
		if more, err = v.scan.Next(&b); more {
			appended = max(appended, b.Identity.AppendTime)
		}
	}
	v.info = v.scan.Info()
	return appended, err
}

// judge looks at what a scan found: header, one run of batches over the whole span, footer.
func (v *verifier) judge(s *manifest.Segment) finding {
	i, h := v.info, &v.info.Header
	bad := func(expected, format string, args ...any) finding {
		return finding{name: Checksum, expected: expected, found: fmt.Sprintf(format, args...)}
	}
	switch {
	case i.Verdict != segment.HeaderGood:
		return bad("a header of this log and this object", "%s", headerText(i.Verdict))
	case h.Epoch != s.Epoch || h.End != s.End:
		return bad(fmt.Sprintf("epoch %d and end %d in the header", s.Epoch, s.End), "epoch %d and end %d", h.Epoch, h.End)
	case len(i.Runs) == 0:
		return bad(fmt.Sprintf("a batch with offset %d", s.Base), "none that verifies at byte %d", i.HeadPos)
	}
	run := &i.Runs[0]
	switch {
	case run.First != s.Base || run.End != s.End || len(i.Runs) > 1:
		return bad(fmt.Sprintf("batches that verify over [%d, %d)", s.Base, s.End), "some over [%d, %d), then none at byte %d", run.First, run.End, run.BreakPos)
	case !i.Sealed:
		return bad("a footer that verifies", "none")
	}
	return finding{}
}

func headerText(v segment.HeaderVerdict) string {
	return [...]string{
		segment.HeaderGood: "a good one", segment.HeaderDamaged: "one that does not verify", segment.HeaderForeign: "one of another log",
		segment.HeaderNewer: "one of a newer version", segment.HeaderMisnamed: "one of another object",
	}[v]
}

// size says how long an object is that has not the length that is expected.
func (v *verifier) size(ctx context.Context, s *manifest.Segment, want int64) finding {
	found := "another length"
	if o, err := v.bucket.Head(ctx, v.prefix+key(s)); err == nil {
		found = fmt.Sprintf("%d", o.Bytes)
	}
	return finding{name: Checksum, expected: fmt.Sprintf("%d bytes", want), found: found}
}

// different names the first figure of the manifest that the object does not have.
func different(s, got *manifest.Segment) finding {
	bad := func(what string, want, is any) finding {
		return finding{name: Checksum, expected: fmt.Sprintf("%s %v, as the manifest says", what, want), found: fmt.Sprint(is)}
	}
	switch {
	case s.CRC != got.CRC:
		return bad("CRC32C", fmt.Sprintf("%08x", s.CRC), fmt.Sprintf("%08x", got.CRC))
	case s.FooterBytes != got.FooterBytes:
		return bad("footer_bytes", s.FooterBytes, got.FooterBytes)
	case s.MinTime != got.MinTime:
		return bad("min_time", s.MinTime, got.MinTime)
	case s.MaxTime != got.MaxTime:
		return bad("max_time", s.MaxTime, got.MaxTime)
	}
	return bad("append_time", s.AppendTime, got.AppendTime)
}

// summing is the file of an object, and sums its bytes up in order while it is read here and there.
type summing struct {
	file disk.File
	ctx  context.Context
	at   int64 // bytes before it are in crc
	crc  uint32
}

// jumpMax is how far a read may lie ahead and still be part of reading in order.
const jumpMax = 64 << 10

// ReadAt implements io.ReaderAt.
func (r *summing) ReadAt(p []byte, off int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if gap := off - r.at; gap > 0 && gap <= jumpMax {
		if _, err := r.ReadAt(make([]byte, gap), r.at); err != nil {
			return 0, err
		}
	}
	n, err := r.file.ReadAt(p, off)
	if off <= r.at && r.at < off+int64(n) {
		r.crc = crc32.Update(r.crc, castagnoli, p[r.at-off:n])
		r.at = off + int64(n)
	}
	return n, err
}

// rest reads on to the end. It returns the memory it used.
func (r *summing) rest(size int64, buf []byte) ([]byte, error) {
	if buf == nil {
		buf = make([]byte, 256<<10)
	}
	for r.at < size {
		if _, err := r.ReadAt(buf[:min(int64(len(buf)), size-r.at)], r.at); err != nil && !errors.Is(err, io.EOF) {
			return buf, err
		}
	}
	return buf, nil
}
