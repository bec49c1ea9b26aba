package segment

import (
	"reflect"
	"testing"
)

// sealed makes a sealed file with several index blocks and producer blocks.
func sealed(t testing.TB, batches, producers int) *maker {
	t.Helper()
	m := newMaker(testHeader(), 1)
	for n := range batches {
		m.producer = int64(n % producers * 7)
		m.batch(uint32(1+n%3), fill(5, byte(n)))
		if n%10 == 9 {
			m.sync()
		}
	}
	m.seal()
	return m
}

// trailer reads the trailer of a sealed file, or of a sidecar.
func (m *maker) trailer(t testing.TB, data []byte, sidecar bool) (Footer, Layout) {
	t.Helper()
	f, l, ok := ReadTrailer(data, int64(len(data)), m.h.LogID, m.h.ID, sidecar)
	if !ok {
		t.Fatal("trailer does not verify")
	}
	return f, l
}

func TestFooterRoundTrip(t *testing.T) {
	for _, batches := range []int{1, 2, 169, 170, 171, 340, 511} {
		m := sealed(t, batches, min(batches, 100))
		f, l := m.trailer(t, m.data, false)
		if f != m.footer.Summary() {
			t.Fatalf("%d batches: got %+v, want %+v", batches, f, m.footer.Summary())
		}
		info := m.scan(t, m.data, true)
		if l.Pos != m.footer.Pos() || int64(len(m.data))-l.Pos != m.footer.Bytes() || int(l.Entries) != batches {
			t.Fatalf("%d batches: layout %+v", batches, l)
		}
		pos, n := l.producersAt()
		states, ok := l.readProducers(m.data[pos:pos+n], nil)
		if !ok || !reflect.DeepEqual(states, info.Producers) || len(states) != min(batches, 100) {
			t.Fatalf("%d batches: producers %d, scan found %d", batches, len(states), len(info.Producers))
		}
		sidecar := m.footer.AppendIndex(nil)
		if g, _ := m.trailer(t, sidecar, true); g != f {
			t.Fatalf("%d batches: sidecar %+v, want %+v", batches, g, f)
		}
		if _, _, ok := ReadTrailer(sidecar, int64(len(sidecar)), m.h.LogID, m.h.ID, false); ok {
			t.Fatal("a sidecar passes for a footer")
		}
		m.h.ID++
		if _, _, ok := ReadTrailer(m.data, int64(len(m.data)), m.h.LogID, m.h.ID, false); ok {
			t.Fatal("a footer passes under another segment id")
		}
	}
}

// Quick and whole scan agree on everything that the quick one says.
func TestQuickScanEqualsWhole(t *testing.T) {
	for _, batches := range []int{1, 170, 400} {
		m := sealed(t, batches, 50)
		quick, whole := m.scan(t, m.data, false), m.scan(t, m.data, true)
		if quick.Scanned || !whole.Scanned || !quick.Sealed || !whole.Sealed {
			t.Fatal("the quick scan is not quick")
		}
		r := whole.Runs[0]
		want := Footer{
			ID: m.h.ID, Base: r.First, End: r.End, DataEnd: r.EndPos, Batches: r.Batches, MinTime: r.MinTime,
			MaxTime: r.MaxTime, AppendTime: r.AppendTime, Commit: r.Commit, Chain: r.Chain, Epoch: whole.Epoch, HeaderCRC: m.crc,
		}
		if quick.Footer != want || whole.Footer != want {
			t.Errorf("footer %+v, batches say %+v", quick.Footer, want)
		}
		if !reflect.DeepEqual(quick.Producers, whole.Producers) || quick.Header != whole.Header || quick.Epoch != whole.Epoch {
			t.Error("quick and whole scan differ")
		}
		if len(whole.Runs) != 1 || r.Break != BreakNone || whole.Tail {
			t.Errorf("whole: %s", spell(whole))
		}
	}
}

func TestProducersFold(t *testing.T) {
	var table producerTable
	batch := func(id int64, epoch int16, seq int32) {
		table.add(&Identity{ProducerID: id, ProducerEpoch: epoch, Sequence: seq, Records: 1, Base: Offset(seq)})
	}
	for seq := range int32(7) {
		batch(9, 1, seq)
	}
	batch(3, 1, 50)
	batch(9, 0, 99) // of an epoch that is fenced
	batch(3, 2, 0)  // a new epoch begins again
	batch(-1, -1, -1)
	got := table.appendTo(nil)
	if len(got) != 2 || got[0].ID != 3 || got[1].ID != 9 {
		t.Fatalf("got %+v", got)
	}
	if got[0].Count != 1 || got[0].Epoch != 2 || got[0].Batches[0].Sequence != 0 {
		t.Errorf("new epoch: %+v", got[0])
	}
	if got[1].Count != 5 || got[1].Epoch != 1 || got[1].Batches[0].Sequence != 2 || got[1].Batches[4].Sequence != 6 {
		t.Errorf("last five: %+v", got[1])
	}
}

// Every look-up, by offset and by time, on the builder, the footer and the sidecar.
func TestLookups(t *testing.T) {
	m := newMaker(testHeader(), 700)
	for n := range 900 {
		m.batch(uint32(1+n%3), fill(n%200, byte(n)))
	}
	m.seal()
	_, l := m.trailer(t, m.data, false)
	sidecar := m.footer.AppendIndex(nil)
	_, side := m.trailer(t, sidecar, true)
	if l.blocks() < 1 || l.Entries >= 900 {
		t.Fatalf("%d entries", l.Entries)
	}
	buf := make([]byte, IndexBlockBytes)
	bases := map[int64]Offset{}
	for k, pos := range m.starts {
		_, i, _, ok := ReadBatchHeader(m.data[pos:], PlacementSeed(m.h.LogID, m.h.ID), IdentitySeed(m.h.LogID))
		if !ok {
			t.Fatalf("batch %d", k)
		}
		bases[pos] = i.Base
	}
	if _, _, ok := l.Seek(memory(m.data), m.h.Base-1, buf); ok {
		t.Error("an answer below the base")
	}
	for o := m.h.Base; o < m.next; o++ {
		pos, base, ok := m.footer.Lookup(o)
		if b, known := bases[pos]; !ok || !known || b != base || base > o {
			t.Fatalf("builder: %d -> %d at %d", o, base, pos)
		}
		if p, b, ok := l.Seek(memory(m.data), o, buf); !ok || p != pos || b != base {
			t.Fatalf("footer: %d -> %d at %d, builder says %d at %d", o, b, p, base, pos)
		}
		if p, b, ok := side.Seek(memory(sidecar), o, buf); !ok || p != pos || b != base {
			t.Fatalf("sidecar: %d -> %d at %d, builder says %d at %d", o, b, p, base, pos)
		}
		// MaxTime is 50 + base: the first record not older than that is in the batch at its base.
		pt, bt, ok := m.footer.LookupTime(50 + o)
		if b, known := bases[pt]; !ok || !known || b != bt || bt > o+2 {
			t.Fatalf("builder: time %d -> %d at %d", 50+o, bt, pt)
		}
		if p, b, ok := l.SeekTime(memory(m.data), 50+o, buf); !ok || p != pt || b != bt {
			t.Fatalf("footer: time %d -> %d at %d, builder says %d at %d", 50+o, b, p, bt, pt)
		}
	}
}

// Times that fall: nothing before the answer is as young as asked for.
func TestLookupTimeOfFallingTimes(t *testing.T) {
	h := testHeader()
	var b FooterBuilder
	b.Reset(&h, 1, 1)
	times := []Time{5, 9, 2, 9, 1, 30, -4, 31}
	for n, at := range times {
		b.Add(int64(1000*(n+1)), &Identity{Records: 1, Base: h.Base + Offset(n), MaxTime: at, ProducerID: -1}, 1, 0)
	}
	for want := Time(-5); want < 33; want++ {
		_, base, ok := b.LookupTime(want)
		if !ok {
			t.Fatal("no answer")
		}
		for n := range times[:base-h.Base] {
			if times[n] >= want {
				t.Errorf("time %d: starts at %d, but record %d has time %d", want, base, n, times[n])
			}
		}
		if k := int(base - h.Base); k+1 < len(times) && times[k] < want && k > 0 && want <= 5 {
			t.Errorf("time %d: starts at %d, although the first record is young enough", want, base)
		}
	}
}

// Every single-bit flip of a footer: each look-up has the right answer or none, and scans find all
// batches.
func TestFooterEveryFlip(t *testing.T) {
	m := sealed(t, 345, 43) // 3 index blocks, 2 producer blocks
	clean := m.scan(t, m.data, true)
	from := int(m.footer.Pos())
	offsets := []Offset{m.h.Base, m.h.Base + 200, m.next - 1}
	type answer struct {
		pos  int64
		base Offset
	}
	var want [3]answer
	for k, o := range offsets {
		want[k].pos, want[k].base, _ = m.footer.Lookup(o)
	}
	data := clone(m.data)
	buf := make([]byte, IndexBlockBytes)
	var s Scanner
	var info FileInfo
	f := m.file(data)
	none, scanned := 0, 0
	for bit := 8 * from; bit < 8*len(data); bit++ {
		data[bit/8] ^= 1 << (bit % 8)
		_, l, ok := ReadTrailer(data, int64(len(data)), m.h.LogID, m.h.ID, false)
		for k, o := range offsets {
			var pos int64
			var base Offset
			found := ok
			if ok {
				pos, base, found = l.Seek(memory(data), o, buf)
			}
			if found && (answer{pos, base} != want[k]) {
				t.Fatalf("flip of bit %d: offset %d found at %d", bit, o, pos)
			}
			if !found {
				none++
			}
		}
		if err := s.Scan(&f, false, &info); err != nil {
			t.Fatal(err)
		}
		if info.Scanned {
			scanned++
			if !reflect.DeepEqual(info.Runs, clean.Runs) || info.Tail {
				t.Fatalf("flip at byte %d of the footer: %s", bit/8-from, spell(info))
			}
		}
		if !reflect.DeepEqual(info.Producers, clean.Producers) {
			t.Fatalf("flip at byte %d of the footer: other producers", bit/8-from)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	if none == 0 || scanned == 0 {
		t.Errorf("%d look-ups without an answer, %d scans: the flips did nothing", none, scanned)
	}
}

func TestSidecar(t *testing.T) {
	m := three(t) // no footer
	sidecar := m.footer.AppendIndex(nil)
	var s Scanner
	var info FileInfo
	scan := func(data, index []byte, whole bool) string {
		f := m.file(data)
		f.Index, f.IndexBytes = memory(index), int64(len(index))
		if err := s.Scan(&f, whole, &info); err != nil {
			t.Fatal(err)
		}
		return spell(info)
	}
	if got := scan(m.data, sidecar, false); got != "h0 e7 ev0 sidecar" || info.Scanned || info.Footer != m.footer.Summary() {
		t.Errorf("quick: %s", got)
	}
	if got := scan(m.data, sidecar, true); got != "h0 e7 ev1004 sidecar [1000,1011)@512-3000" || info.Footer != m.footer.Summary() {
		t.Errorf("whole: %s", got)
	}
	scanned := "h0 e7 ev1004 tail [1000,1006)@512-1688 break1@1688"
	if got := scan(m.data[:2900], sidecar, false); got != scanned {
		t.Errorf("file shorter than its sidecar says: %s", got)
	}
	bad := clone(m.data)
	bad[2500]++
	if got := scan(bad, sidecar, true); got != "h0 e7 ev1004 tail [1000,1006)@512-1688 break2@1688" {
		t.Errorf("damaged after its sidecar was made: %s", got)
	}
	for bit := range 8 * len(sidecar) {
		index := clone(sidecar)
		index[bit/8] ^= 1 << (bit % 8)
		got := scan(m.data, index, false)
		if got != "h0 e7 ev0 sidecar" && got != "h0 e7 ev1004 [1000,1011)@512-3000" {
			t.Fatalf("flip of bit %d: %s", bit, got)
		}
	}
	f := m.file(m.data)
	f.Index, f.IndexBytes = broken{sidecar, int64(len(sidecar) - 10)}, int64(len(sidecar))
	if err := s.Scan(&f, false, &info); err != nil || !info.Scanned || info.Sidecar || len(info.Runs) != 1 {
		t.Errorf("unreadable sidecar: %v, %s", err, spell(info))
	}
	// A footer whose producers are damaged gives way to a sidecar.
	m.seal()
	_, l := m.trailer(t, m.data, false)
	at, _ := l.producersAt()
	m.data[at+20]++
	if got := scan(m.data, sidecar, false); got != "h0 e7 ev0 sidecar" {
		t.Errorf("damaged producers: %s", got)
	}
}

// A damaged index block is no torn batch: the trailer still says where the footer begins.
func TestDamagedIndexBlock(t *testing.T) {
	m := three(t)
	m.seal()
	m.data[m.footer.Pos()]++
	m.data[3010] = 1 // padding
	if got, want := spell(m.scan(t, m.data, true)), "h0 e7 ev1004 sealed [1000,1011)@512-3000"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A footer that verifies but says other things than the batches is no footer.
func TestFooterIsNotTrusted(t *testing.T) {
	m := three(t)
	m.footer.f.Chain++
	m.footer.f.End++
	m.seal()
	if got, want := spell(m.scan(t, m.data, true)), "h0 e7 ev1004 [1000,1011)@512-3000"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	m = three(t)
	m.seal()
	zeros(m.data, 1536, 3072) // the last commit was lost, the footer was not
	if got, want := spell(m.scan(t, m.data, true)), "h0 e7 ev1003 [1000,1004)@512-1146"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFooterBuilderAllocatesNothing(t *testing.T) {
	h := testHeader()
	var b FooterBuilder
	var out []byte
	i := Identity{Records: 1, ProducerEpoch: 1}
	if n := testing.AllocsPerRun(5, func() {
		b.Reset(&h, 1, 64)
		for k := range 500 {
			i.Base, i.ProducerID = h.Base+Offset(k), int64(k%60)
			b.Add(int64(512+200*k), &i, uint64(k+1), 1)
		}
		out = b.Append(out[:0])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFooterAdd(b *testing.B) {
	h := testHeader()
	var f FooterBuilder
	i := Identity{Records: 1, ProducerID: -1, PayloadBytes: 128}
	b.ReportAllocs()
	for n := range b.N {
		if n%(1<<20) == 0 {
			f.Reset(&h, 1, 4096)
			i.Base = h.Base
		}
		f.Add(f.f.DataEnd, &i, uint64(n+1), 1)
		i.Base++
	}
}

func BenchmarkFooterAppend(b *testing.B) {
	m := sealed(b, 2000, 10)
	var out []byte
	b.ReportAllocs()
	for range b.N {
		out = m.footer.Append(out[:0])
	}
	b.SetBytes(int64(len(out)))
}
