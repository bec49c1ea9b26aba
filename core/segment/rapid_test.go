package segment

import (
	"bytes"
	"cmp"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// repeat runs a property n times 100 draws.
func repeat(t *testing.T, n int, property func(t *rapid.T)) {
	t.Helper()
	for range n {
		rapid.Check(t, property)
	}
}

func drawID(t *rapid.T) ID { return ID(rapid.Uint64().Draw(t, "id")) }

func drawLogID(t *rapid.T) (id LogID) {
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "log id"))
	return id
}

func drawBytes(t *rapid.T, most int, what string) []byte {
	if rapid.IntRange(0, 5).Draw(t, what+" is nil") == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, what)
}

func drawIdentity(t *rapid.T) Identity {
	return Identity{
		PayloadBytes: rapid.Uint32Range(0, PayloadBytesMax).Draw(t, "payload bytes"), Kind: rapid.Uint8Range(1, 2).Draw(t, "kind"),
		Records: rapid.Uint32Range(1, math.MaxUint32).Draw(t, "records"), Base: rapid.Int64Range(0, math.MaxInt64-math.MaxUint32).Draw(t, "base"),
		Epoch: rapid.Uint32().Draw(t, "epoch"), Nonce: rapid.Uint64().Draw(t, "nonce"), AppendTime: rapid.Int64().Draw(t, "append time"),
		MaxTime: rapid.Int64().Draw(t, "max time"), ProducerID: rapid.Int64().Draw(t, "producer"),
		ProducerEpoch: rapid.Int16().Draw(t, "producer epoch"), Sequence: rapid.Int32().Draw(t, "sequence"), PayloadCRC: rapid.Uint32().Draw(t, "crc"),
	}
}

// TestRapidBatch: a batch header reads back as what was written, only under its own log and segment,
// and not with any one byte changed.
func TestRapidBatch(t *testing.T) {
	repeat(t, 5, func(t *rapid.T) {
		i := drawIdentity(t)
		p := Placement{
			ID: drawID(t), Commit: rapid.Uint64Range(1, math.MaxUint64).Draw(t, "commit"), Chain: rapid.Uint32().Draw(t, "chain"),
			Frontier: rapid.Int64Range(0, i.Base).Draw(t, "frontier"),
		}
		log := drawLogID(t)
		place, identity := PlacementSeed(log, p.ID), IdentitySeed(log)
		b := make([]byte, BatchHeaderBytes)
		crc := PutBatchHeader(b, &p, &i, place, identity)
		gotP, gotI, gotCRC, ok := ReadBatchHeader(b, place, identity)
		if !ok || gotP != p || gotI != i || gotCRC != crc {
			t.Fatalf("%+v %+v became %+v %+v, %v", p, i, gotP, gotI, ok)
		}
		if _, _, _, ok := ReadBatchHeader(b, PlacementSeed(log, p.ID+1), identity); ok {
			t.Fatal("it verifies in another segment")
		}
		at := rapid.IntRange(0, len(b)-1).Draw(t, "byte")
		b[at] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
		if _, _, _, ok := ReadBatchHeader(b, place, identity); ok {
			t.Fatalf("byte %d is wrong and it verifies", at)
		}
	})
}

// TestRapidHeader: the same of a segment header.
func TestRapidHeader(t *testing.T) {
	repeat(t, 5, func(t *rapid.T) {
		h := Header{
			Kind: Kind(rapid.Uint8Range(1, 3).Draw(t, "kind")), Sync: SyncMode(rapid.Uint8Range(0, 2).Draw(t, "sync")),
			SectorBytes: 512 << rapid.IntRange(0, 3).Draw(t, "sector"), LogID: drawLogID(t), ID: drawID(t), Epoch: rapid.Uint32().Draw(t, "epoch"),
			Base: rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "base"), Created: rapid.Int64().Draw(t, "created"), Nonce: rapid.Uint64().Draw(t, "nonce"),
		}
		if h.Kind != Created {
			h.End = rapid.Int64Range(h.Base+1, math.MaxInt64).Draw(t, "end")
		}
		b := bytes.Repeat([]byte{0xee}, SectorBytesMax)
		crc := PutHeader(b, &h)
		got, gotCRC, verdict, version := ReadHeader(b)
		if verdict != HeaderGood || got != h || gotCRC != crc || version != FormatVersion {
			t.Fatalf("%+v became %+v, %v", h, got, verdict)
		}
		if !allZero(b[HeaderBytes:h.SectorBytes]) || !allZeroNot(b[h.SectorBytes:]) {
			t.Fatal("not just one sector was written")
		}
		b[rapid.IntRange(0, HeaderBytes-1).Draw(t, "byte")] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
		if _, _, verdict, _ := ReadHeader(b); verdict != HeaderDamaged {
			t.Fatalf("a byte is wrong and the verdict is %v", verdict)
		}
	})
}

// allZeroNot reports whether no byte is zero.
func allZeroNot(b []byte) bool { return !slices.Contains(b, 0) }

// TestRapidSuper: the same of a superblock, whatever stands behind it in its file.
func TestRapidSuper(t *testing.T) {
	repeat(t, 5, func(t *rapid.T) {
		offset := func(what string) Offset { return rapid.Int64Range(0, math.MaxInt64).Draw(t, what) }
		s := Superblock{
			Sequence: rapid.Uint64().Draw(t, "sequence"), LogID: drawLogID(t), Epoch: rapid.Uint32().Draw(t, "epoch"),
			Nonce: rapid.Uint64().Draw(t, "nonce"), Sync: SyncMode(rapid.Uint8Range(0, 2).Draw(t, "sync")),
			SectorBytes: 512 << rapid.IntRange(0, 3).Draw(t, "sector"), Clean: rapid.Bool().Draw(t, "clean"), Complete: rapid.Bool().Draw(t, "complete"),
			Start: offset("start"), HotStart: offset("hot start"), Frontier: offset("frontier"), Committed: offset("committed"),
			CommittedEpoch: rapid.Uint32().Draw(t, "committed epoch"), ManifestSequence: rapid.Uint64().Draw(t, "manifest"), Created: rapid.Int64().Draw(t, "created"),
		}
		epoch, first := Epoch(0), Offset(0)
		for range rapid.IntRange(0, 400).Draw(t, "lives") {
			epoch += rapid.Uint32Range(1, 1<<20).Draw(t, "epochs")
			first += rapid.Int64Range(0, 1<<50).Draw(t, "offsets")
			s.Lineage = append(s.Lineage, Lineage{Epoch: epoch, First: first})
		}
		b, err := AppendSuper([]byte("before"), &s)
		if err != nil || (len(b)-6)%SuperBytesMin != 0 {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		b = append(b[6:], drawBytes(t, 50, "behind")...)
		got := Superblock{Lineage: make([]Lineage, 3)}
		if err := ReadSuper(b, &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Lineage, s.Lineage) {
			t.Fatalf("lineage %v became %v", s.Lineage, got.Lineage)
		}
		got.Lineage = s.Lineage
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("%+v became %+v", s, got)
		}
		b[rapid.IntRange(0, superFixedBytes+LineageBytes*len(s.Lineage)+superCRCBytes-1).Draw(t, "byte")] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
		if ReadSuper(b, &got) == nil {
			t.Fatal("a byte is wrong and it verifies")
		}
	})
}

// TestRapidRecords: records read back as they were, with nil and empty told apart.
func TestRapidRecords(t *testing.T) {
	var it RecordIter
	repeat(t, 5, func(t *rapid.T) {
		recs := make([]Record, rapid.IntRange(1, 8).Draw(t, "records"))
		for i := range recs {
			recs[i] = Record{Key: drawBytes(t, 40, "key"), Value: drawBytes(t, 200, "value"), Time: rapid.Int64().Draw(t, "time")}
			if i > 0 && rapid.Bool().Draw(t, "same time") {
				recs[i].Time = recs[i-1].Time
			}
			for range rapid.IntRange(0, 2).Draw(t, "headers") {
				h := RecordHeader{Key: append([]byte{}, drawBytes(t, 9, "header")...), Value: drawBytes(t, 9, "header value")}
				recs[i].Headers = append(recs[i].Headers, h)
			}
		}
		payload, maxTime := AppendRecords(nil, recs)
		got, err := readRecords(&it, payload, uint32(len(recs)))
		if err != nil || !reflect.DeepEqual(got, recs) {
			t.Fatalf("%+v became %+v, %v", recs, got, err)
		}
		latest := slices.MaxFunc(recs, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
		if maxTime != latest.Time {
			t.Fatalf("greatest time %d, want %d", maxTime, latest.Time)
		}
	})
}

// TestRapidIndex: whatever batches a file has, the index of its footer, of its sidecar and of the
// segment while it is active lead to the last indexed batch at or before each offset, and before each
// time, as going through the batches one by one does; a quick look at the file says the same as a
// whole scan.
func TestRapidIndex(t *testing.T) {
	repeat(t, 3, func(t *rapid.T) {
		h := testHeader()
		h.Base = rapid.Int64Range(0, 1000).Draw(t, "base")
		spacing := rapid.OneOf(rapid.Int64Range(1, 900), rapid.SampledFrom([]int64{512, 1024})).Draw(t, "spacing") // sectors are 512
		m := newMaker(h, spacing)
		var at []Identity
		var s Scanner
		for n := range rapid.IntRange(1, 260).Draw(t, "batches") {
			m.shift = rapid.Int64Range(-20, 20).Draw(t, "clock")
			m.producer = rapid.Int64Range(-1, 60).Draw(t, "producer")
			m.batch(rapid.Uint32Range(1, 3).Draw(t, "records"), bytes.Repeat([]byte{byte(n)}, rapid.IntRange(0, 60).Draw(t, "bytes")))
			if rapid.IntRange(0, 3).Draw(t, "sync") == 0 {
				m.sync()
			}
		}
		sidecar := m.footer.AppendIndex(nil)
		m.seal()
		f := m.file(m.data)
		var b Batch
		if err := s.Start(&f); err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			var err error
			if more, err = s.Next(&b); err != nil {
				t.Fatal(err)
			} else if more {
				at = append(at, b.Identity)
			}
		}
		var quick, whole FileInfo
		if err := s.Scan(&f, false, &quick); err != nil {
			t.Fatal(err)
		}
		if err := s.Scan(&f, true, &whole); err != nil {
			t.Fatal(err)
		}
		r := &whole.Runs[0]
		if quick.Scanned || !quick.Sealed || len(whole.Runs) != 1 || len(at) != len(m.starts) || quick.Footer != whole.Footer ||
			quick.Footer.End != r.End || quick.Footer.DataEnd != r.EndPos || quick.Footer.MinTime != r.MinTime || quick.Footer.MaxTime != r.MaxTime ||
			quick.Footer.Batches != r.Batches || !reflect.DeepEqual(quick.Producers, whole.Producers) {
			t.Fatalf("quick %+v\nwhole %+v", quick, whole)
		}
		indexed := plainIndex(at, m.starts, spacing)
		_, inside, ok := ReadTrailer(m.data, int64(len(m.data)), h.LogID, h.ID, false)
		_, beside, ok2 := ReadTrailer(sidecar, int64(len(sidecar)), h.LogID, h.ID, true)
		if !ok || !ok2 {
			t.Fatal("a footer does not verify")
		}
		buf := make([]byte, IndexBlockBytes)
		o := rapid.Int64Range(h.Base, m.next-1).Draw(t, "offset")
		time := rapid.Int64Range(whole.Footer.MinTime-1, whole.Footer.MaxTime+1).Draw(t, "time")
		wantAt, wantBefore := indexed[0], indexed[0]
		for _, k := range indexed {
			if at[k].Base <= o {
				wantAt = k
			}
			if k > 0 && !slices.ContainsFunc(at[:k], func(i Identity) bool { return i.MaxTime >= time }) {
				wantBefore = k
			}
		}
		for name, seek := range map[string]func() (int64, Offset, bool){
			"footer":  func() (int64, Offset, bool) { return inside.Seek(memory(m.data), o, buf) },
			"sidecar": func() (int64, Offset, bool) { return beside.Seek(memory(sidecar), o, buf) },
			"active":  func() (int64, Offset, bool) { return m.footer.Lookup(o) },
		} {
			if pos, base, ok := seek(); !ok || pos != m.starts[wantAt] || base != at[wantAt].Base {
				t.Fatalf("%s, offset %d: %d at %d, %v; want %d at %d", name, o, base, pos, ok, at[wantAt].Base, m.starts[wantAt])
			}
		}
		for name, seek := range map[string]func() (int64, Offset, bool){
			"footer":  func() (int64, Offset, bool) { return inside.SeekTime(memory(m.data), time, buf) },
			"sidecar": func() (int64, Offset, bool) { return beside.SeekTime(memory(sidecar), time, buf) },
			"active":  func() (int64, Offset, bool) { return m.footer.LookupTime(time) },
		} {
			if pos, base, ok := seek(); !ok || pos != m.starts[wantBefore] || base != at[wantBefore].Base {
				t.Fatalf("%s, time %d: %d at %d, %v; want %d at %d", name, time, base, pos, ok, at[wantBefore].Base, m.starts[wantBefore])
			}
		}
	})
}

// plainIndex returns which batches have an entry: the first, then each that starts far enough behind
// the last one that has.
func plainIndex(at []Identity, starts []int64, spacing int64) (indexed []int) {
	last := int64(math.MinInt64 / 2)
	for k := range at {
		if starts[k]-last >= spacing {
			indexed, last = append(indexed, k), starts[k]
		}
	}
	return indexed
}
