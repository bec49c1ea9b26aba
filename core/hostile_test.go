package core_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"varve/core"
	"varve/core/segment"
	"varve/faultfs"
)

// hostile makes directories that nobody's program left: every checksum is right, but the fields
// behind it are not.
type hostile struct {
	rand  faultfs.Rand
	files []savedFile
	lied  bool // a batch header or a footer is crafted: what it says is believed
}

func (h *hostile) below(n int) int { return int(h.rand.Next() % uint64(n)) }

// offset is one that tends to lie at a limit.
func (h *hostile) offset() core.Offset {
	limits := [...]core.Offset{0, 1, 2, 7, 30, 59, 60, 61, 100, 1 << 32, 1 << 40, 1<<62 - 1, 1 << 62, math.MaxInt64 - 1, math.MaxInt64}
	if h.below(2) == 0 {
		return core.Offset(h.below(130))
	}
	return limits[h.below(len(limits))]
}

func (h *hostile) epoch() core.Epoch {
	limits := [...]core.Epoch{0, 1, 2, 3, 4, 5, 9, segment.EpochMax - 2, segment.EpochMax - 1, segment.EpochMax}
	return limits[h.below(len(limits))]
}

// super changes a field of one slot, or of both.
func (h *hostile) super() {
	for i := range h.files {
		f := &h.files[i]
		if !strings.HasPrefix(f.name, "super.") || h.below(3) == 0 {
			continue
		}
		var s segment.Superblock
		if segment.ReadSuper(f.data, &s) != nil {
			continue
		}
		switch h.below(8) {
		case 0:
			s.Start = h.offset()
		case 1:
			s.HotStart = h.offset()
		case 2:
			s.Frontier = h.offset()
		case 3:
			s.Committed, s.CommittedEpoch = h.offset(), h.epoch()
		case 4:
			s.Epoch = h.epoch()
		case 5:
			s.Sequence = [...]uint64{0, 1, math.MaxUint64 - 1, math.MaxUint64}[h.below(4)]
		case 6:
			s.Lineage = s.Lineage[:h.below(len(s.Lineage)+1)]
		case 7:
			s.Lineage = s.Lineage[:0]
			var l segment.Lineage
			for range h.below(4) {
				l.Epoch = max(l.Epoch+1, h.epoch())
				l.First = max(l.First, h.offset())
				if n := len(s.Lineage); n > 0 && s.Lineage[n-1].Epoch >= l.Epoch {
					break
				}
				s.Lineage = append(s.Lineage, l)
			}
		}
		f.data, _ = segment.AppendSuper(nil, &s)
	}
}

// header changes a field of a segment's header, and its name along with it.
func (h *hostile) header(f *savedFile) {
	var head segment.Header
	head, _, v, _ := segment.ReadHeader(f.data)
	if v != segment.HeaderGood || len(f.data) < int(head.SectorBytes) {
		return
	}
	rename := h.below(4) > 0
	switch h.below(6) {
	case 0:
		head.Base = h.offset()
	case 1:
		head.ID = segment.MakeID(h.epoch(), [...]uint32{0, 1, 2, math.MaxUint32}[h.below(4)])
	case 2:
		head.Epoch = h.epoch()
	case 3:
		head.Kind, head.End = segment.Replacement, h.offset()
	case 4:
		head.Kind, head.End = segment.Lost, h.offset()
	case 5:
		head.Kind, head.End = segment.Created, 0
	}
	if head.Kind != segment.Created && head.End <= head.Base {
		return
	}
	f.data = append([]byte(nil), f.data...)
	segment.PutHeader(f.data, &head)
	if rename {
		f.name = segment.Name(head.Base, head.ID)
	}
}

// batch changes a field of some batch header and makes both checksums right.
func (h *hostile) batch(f *savedFile) {
	head, _, v, _ := segment.ReadHeader(f.data)
	if v != segment.HeaderGood {
		return
	}
	ps, is := segment.PlacementSeed(head.LogID, head.ID), segment.IdentitySeed(head.LogID)
	f.data = append([]byte(nil), f.data...)
	var at []int
	for pos := 512; pos+segment.BatchHeaderBytes <= len(f.data); pos += 4 {
		if _, _, _, ok := segment.ReadBatchHeader(f.data[pos:], ps, is); ok {
			at = append(at, pos)
		}
	}
	if len(at) == 0 {
		return
	}
	pos := at[h.below(len(at))]
	p, i, _, _ := segment.ReadBatchHeader(f.data[pos:], ps, is)
	switch h.below(7) {
	case 0:
		p.Frontier = h.offset()
	case 1:
		i.Base = h.offset()
	case 2:
		i.Records = [...]uint32{1, 2, 1 << 31, math.MaxUint32}[h.below(4)]
	case 3:
		i.Epoch = h.epoch()
	case 4:
		i.PayloadBytes = [...]uint32{0, 1, 1 << 20, 1 << 30}[h.below(4)]
	case 5:
		p.Commit = [...]uint64{1, 2, math.MaxUint64}[h.below(3)]
	case 6:
		i.ProducerID, i.ProducerEpoch, i.Sequence = int64(h.below(5)), int16(h.below(3)), int32(h.rand.Next())
	}
	segment.PutBatchHeader(f.data[pos:], &p, &i, ps, is)
}

// footer changes eight bytes of a trailer and makes its checksum right.
func (h *hostile) footer(f *savedFile) {
	n := len(f.data)
	head, _, v, _ := segment.ReadHeader(f.data)
	if v != segment.HeaderGood || n < segment.TrailerBytes {
		return
	}
	f.data = append([]byte(nil), f.data...)
	b := f.data[n-segment.TrailerBytes:]
	binary.LittleEndian.PutUint64(b[16+8*h.below(13):], uint64(h.offset()))
	crc := crc32.Update(segment.PlacementSeed(head.LogID, head.ID), crc32.MakeTable(crc32.Castagnoli), b[:124])
	binary.LittleEndian.PutUint32(b[124:], crc)
}

// mutate does one hostile thing.
func (h *hostile) mutate() {
	at := segmentsOf(h.files)
	if len(at) == 0 {
		return
	}
	k := at[h.below(len(at))]
	f := &h.files[k]
	switch h.below(12) {
	case 0, 1, 2:
		h.super()
	case 3, 4:
		h.header(f)
	case 5, 6:
		h.batch(f)
		h.lied = true
	case 7:
		h.footer(f)
		h.lied = true
	case 8:
		h.files = append(append([]savedFile(nil), h.files[:k]...), h.files[k+1:]...)
	case 9:
		f.data = f.data[:h.below(len(f.data)+1)]
	case 10:
		f.data = append([]byte(nil), f.data...)
		if len(f.data) > 0 {
			from := h.below(len(f.data))
			clear(f.data[from:min(from+h.below(2000), len(f.data))])
		}
	case 11:
		id := segment.MakeID(h.epoch(), uint32(h.rand.Next()))
		h.files = append(h.files, savedFile{segment.Name(h.offset(), id), f.data})
	}
}

// hostileBases are logs to start from: lives with kills, power losses, trims and rescues.
func hostileBases(t *testing.T) (*rig, [][]savedFile) {
	var bases [][]savedFile
	r := newRig(t)
	for life := range 4 {
		r.open(smokeConfig())
		r.write(int(r.log.End()), int(r.log.End())+15)
		if life == 1 {
			if err := r.log.Trim(r.now, 10); err != nil {
				t.Fatal(err)
			}
			r.pump()
		}
		switch life {
		case 0, 2:
			r.append(int(r.log.End()))
			r.finish(r.issue(core.Tail))
			r.kill()
		case 1:
			r.power()
		case 3:
			bases = append(bases, r.files())
			r.close()
		}
		bases = append(bases, r.files())
	}
	return r, bases
}

func TestHostileDirectories(t *testing.T) {
	r, bases := hostileBases(t)
	rounds := 5000
	if testing.Short() {
		rounds = 1000
	}
	bad := 0
	for seed := range rounds {
		if err := hostileRound(r, bases, seed); err != nil {
			t.Errorf("seed %d: %v", seed, err)
			if bad++; bad == 10 {
				return
			}
		}
	}
}

func hostileRound(r *rig, bases [][]savedFile, seed int) (err error) {
	h := &hostile{files: append([]savedFile(nil), bases[seed%len(bases)]...)}
	h.rand.Seed(uint64(seed))
	for range 1 + h.below(3) {
		h.mutate()
	}
	cfg := smokeConfig()
	cfg.AllowDamaged, cfg.Repair = h.below(3) == 0, h.below(3) == 0
	cfg.VerifyAllOnOpen, cfg.ReadOnly = h.below(2) == 0, h.below(6) == 0
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	r.restore(dedup(h.files))
	if err := r.hostileLife(cfg, h.lied); err != nil || h.lied || r.log.Phase() != core.Ready && r.log.Phase() != core.Planned {
		return err
	}
	return r.honest()
}

// honest wants every record that is served to be the one of its offset.
func (r *rig) honest() error {
	for o := r.log.Start(); o < r.log.End(); {
		got, err := r.readUntil(o)
		for i, v := range got {
			if v != uint64(o)+uint64(i) {
				return fmt.Errorf("offset %d is served with record %d", o+core.Offset(i), v)
			}
		}
		o += core.Offset(len(got))
		var damage *core.CorruptError
		switch {
		case err == nil && o < r.log.End():
			return fmt.Errorf("reading ends at %d of %d", o, r.log.End())
		case err != nil && !errors.As(err, &damage):
			return fmt.Errorf("reading offset %d: %w", o, err)
		case err != nil:
			o = max(o+1, damage.End)
		}
	}
	return nil
}

// dedup keeps the last of several files of one name.
func dedup(files []savedFile) []savedFile {
	var out []savedFile
	for i := range files {
		last := true
		for j := i + 1; j < len(files); j++ {
			last = last && files[j].name != files[i].name
		}
		if last {
			out = append(out, files[i])
		}
	}
	return out
}

// hostileLife opens whatever lies there; if that works, the log must serve what it says, take
// appends, close and open again.
func (r *rig) hostileLife(cfg core.Config, lied bool) error {
	r.start(cfg)
	if r.log.Phase() == core.Opening {
		return fmt.Errorf("the open stands still")
	}
	if cfg.ReadOnly || r.log.Phase() != core.Ready {
		return nil
	}
	l := r.log
	if l.Start() > l.Frontier() || l.Frontier() > l.End() || l.Committed() != l.End() {
		return fmt.Errorf("start %d, frontier %d, committed %d, end %d", l.Start(), l.Frontier(), l.Committed(), l.End())
	}
	end := l.End()
	for range 3 {
		b := batchOf(int(l.End()))
		if _, err := l.Append(r.now, &b); err != nil {
			break
		}
		r.pump()
	}
	for i := range r.acked {
		if err := r.acked[i].Err; err != nil {
			return fmt.Errorf("append: %w", err)
		}
	}
	if got, err := r.readUntil(end); err != nil || len(got) != int(l.End()-end) {
		return fmt.Errorf("%d of %d new records can be read: %w", len(got), l.End()-end, err)
	}
	end = l.End()
	l.Close(r.now)
	r.pump()
	if l.Phase() != core.Closed || l.Err() != nil {
		return fmt.Errorf("close ends in %v: %w", l.Phase(), l.Err())
	}
	r.kill()
	cfg.Repair = false
	r.start(cfg)
	if err := l.Err(); err != nil && strings.Contains(err.Error(), "used up") {
		return nil
	}
	if l.Phase() != core.Ready || l.End() != end {
		return fmt.Errorf("the second open ends in %v at %d, want %d: %w", l.Phase(), l.End(), end, l.Err())
	}
	if !lied && !l.Plan().Empty() {
		return fmt.Errorf("the second plan is not empty")
	}
	return nil
}

// Thousands of files in the worst order cost no more than reading them.
func TestDirectoryInReverse(t *testing.T) {
	r, files := oneLife(t, smokeConfig(), 30)
	const n = 4000
	for i := range n {
		files = append(files, savedFile{segment.Name(core.Offset(1_000_000+i), segment.MakeID(1, uint32(1_000_000-i))), nil})
	}
	r.restore(files)
	began := time.Now()
	r.open(smokeConfig())
	if took := time.Since(began); took > 3*time.Second {
		t.Fatalf("open took %v", took)
	}
	r.wantRecords(0, 30)
	if left := len(segmentsOf(r.files())); left > 10 {
		t.Fatalf("%d files are left of %d without a batch", left, n)
	}
}

// TestFooterReachesIntoTheNextFile: a footer with a right checksum that claims more than its file
// holds does not hide the records of the next file.
func TestFooterReachesIntoTheNextFile(t *testing.T) {
	for _, more := range []core.Offset{1, 3, 1000, 1 << 40} {
		img := rolled(t)
		files := segmentsOf(img)
		first := &img[files[0]]
		head, _, _, _ := segment.ReadHeader(first.data)
		data := append([]byte(nil), first.data...)
		b := data[len(data)-segment.TrailerBytes:]
		end := core.Offset(binary.LittleEndian.Uint64(b[32:]))
		binary.LittleEndian.PutUint64(b[32:], uint64(end+more))
		crc := crc32.Update(segment.PlacementSeed(head.LogID, head.ID), crc32.MakeTable(crc32.Castagnoli), b[:124])
		binary.LittleEndian.PutUint32(b[124:], crc)

		r := newRig(t)
		r.restore(img)
		r.open(tableConfig())
		want := int(r.log.End())
		r = newRig(t)
		r.restore(img.with(first.name, data))
		r.open(tableConfig())
		if got := int(r.log.End()); got != want {
			t.Fatalf("+%d: end %d, want %d", more, got, want)
		}
		r.wantRecords(0, want)
	}
}
