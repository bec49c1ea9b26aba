package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"varve/core/segment"
)

// Golden texts of version 1, the same as in docs/format.md. They were made by a second implementation
// (string formatting and a bitwise CRC), not by this package.
const (
	goldenManifest = `{"varve":"manifest","version":1,
"log":"000102030405060708090a0b0c0d0e0f","epoch":3,"nonce":"1122334455667788","sequence":9007199254740993,
"start":100,"deleted_to":0,
"lineage":[
{"epoch":1,"first":0},
{"epoch":3,"first":1000}
],
"segments":[
{"base":1000,"end":1005,"epoch":3,"state":"finished","attempt":8,"id":"0000000300000008","bytes":1024,"footer_bytes":232,"crc":"deadbeef","min_time":1700000000000000001,"max_time":1700000000000000004,"append_time":1700000000500000000},
{"base":1005,"end":1100,"epoch":3,"state":"lost","attempt":0,"id":"0000000000000000","bytes":0,"footer_bytes":0,"crc":"00000000","min_time":0,"max_time":0,"append_time":0},
{"base":1100,"end":1200,"epoch":3,"state":"dead","attempt":9,"id":"0000000300000009","bytes":2048,"footer_bytes":168,"crc":"00000005","min_time":1700000000000000000,"max_time":1700000000000000000,"append_time":1700000000000000000},
{"base":1100,"end":1300,"epoch":3,"state":"started","attempt":10,"id":"000000030000000a","bytes":0,"footer_bytes":0,"crc":"00000000","min_time":0,"max_time":0,"append_time":0}
],
"pages":[
{"base":0,"end":1000,"number":7,"count":2,"bytes":565,"crc":"6d3a186d","object_bytes":13096,"min_time":-5,"max_time":1700000000000000009,"append_time":1700000000000000010}
],
"crc":"c7fe05c7"}
`
	goldenPage = `{"varve":"page","version":1,
"log":"000102030405060708090a0b0c0d0e0f","number":7,
"segments":[
{"base":0,"end":400,"epoch":1,"state":"finished","attempt":3,"id":"0000000100000002","bytes":4096,"footer_bytes":168,"crc":"e3069283","min_time":-5,"max_time":1700000000000000000,"append_time":1700000000000000001},
{"base":400,"end":1000,"epoch":1,"state":"finished","attempt":4,"id":"0000000100000003","bytes":9000,"footer_bytes":168,"crc":"00000001","min_time":1700000000000000000,"max_time":1700000000000000009,"append_time":1700000000000000010}
],
"crc":"fdc739db"}
`
)

const goldenTime segment.Time = 1_700_000_000_000_000_000

func goldenLog() (log segment.LogID) {
	for i := range log {
		log[i] = byte(i)
	}
	return log
}

func goldenManifestFields() *Manifest {
	return &Manifest{
		LogID: goldenLog(), Epoch: 3, Nonce: 0x1122334455667788, Sequence: 1<<53 + 1, Start: 100,
		Lineage: []segment.Lineage{{Epoch: 1, First: 0}, {Epoch: 3, First: 1000}},
		Segments: []Segment{
			{
				Base: 1000, End: 1005, Epoch: 3, State: Finished, Attempt: 8, ID: 3<<32 | 8, Bytes: 1024, FooterBytes: 232, CRC: 0xdeadbeef,
				MinTime: goldenTime + 1, MaxTime: goldenTime + 4, AppendTime: goldenTime + 500_000_000,
			},
			{Base: 1005, End: 1100, Epoch: 3, State: Lost},
			{
				Base: 1100, End: 1200, Epoch: 3, State: Dead, Attempt: 9, ID: 3<<32 | 9, Bytes: 2048, FooterBytes: 168, CRC: 5,
				MinTime: goldenTime, MaxTime: goldenTime, AppendTime: goldenTime,
			},
			{Base: 1100, End: 1300, Epoch: 3, State: Started, Attempt: 10, ID: 3<<32 | 10},
		},
		Pages: []Page{{
			Base: 0, End: 1000, Number: 7, Count: 2, Bytes: int64(len(goldenPage)), CRC: 0x6d3a186d, ObjectBytes: 13096,
			MinTime: -5, MaxTime: goldenTime + 9, AppendTime: goldenTime + 10,
		}},
	}
}

func goldenPageFields() *PageText {
	return &PageText{LogID: goldenLog(), Number: 7, Segments: []Segment{
		{
			Base: 0, End: 400, Epoch: 1, State: Finished, Attempt: 3, ID: 1<<32 | 2, Bytes: 4096, FooterBytes: 168, CRC: 0xe3069283,
			MinTime: -5, MaxTime: goldenTime, AppendTime: goldenTime + 1,
		},
		{
			Base: 400, End: 1000, Epoch: 1, State: Finished, Attempt: 4, ID: 1<<32 | 3, Bytes: 9000, FooterBytes: 168, CRC: 1,
			MinTime: goldenTime, MaxTime: goldenTime + 9, AppendTime: goldenTime + 10,
		},
	}}
}

func TestGolden(t *testing.T) {
	if got := string(Append(nil, goldenManifestFields())); got != goldenManifest {
		t.Errorf("got\n%s\nwant\n%s", got, goldenManifest)
	}
	if got := string(AppendPage(nil, goldenPageFields())); got != goldenPage {
		t.Errorf("got\n%s\nwant\n%s", got, goldenPage)
	}
	var m Manifest
	if err := Parse([]byte(goldenManifest), &m); err != nil || !reflect.DeepEqual(&m, goldenManifestFields()) {
		t.Errorf("parsed %+v, %v", m, err)
	}
	var p PageText
	if err := ParsePage([]byte(goldenPage), &p); err != nil || !reflect.DeepEqual(&p, goldenPageFields()) {
		t.Errorf("parsed %+v, %v", p, err)
	}
	if err := m.Pages[0].Verify(goldenLog(), []byte(goldenPage), &p); err != nil {
		t.Error(err)
	}
	if got := m.Exported(); got != 1100 {
		t.Errorf("exported up to %d", got)
	}
}

// TestGoldenInDocs: the page of the format shows these very texts.
func TestGoldenInDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{goldenManifest, goldenPage} {
		if !bytes.Contains(doc, []byte("\n```\n"+text+"```\n")) {
			t.Errorf("docs/format.md lacks\n%s", text)
		}
	}
}

// TestIsJSON: anybody's JSON decoder reads the text, numbers beyond 2^53 included.
func TestIsJSON(t *testing.T) {
	d := json.NewDecoder(strings.NewReader(goldenManifest))
	d.UseNumber()
	var m struct {
		Sequence json.Number
		Segments []struct {
			Base    int64
			MinTime int64 `json:"min_time"`
			State   string
		}
		Pages []map[string]any
	}
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.Sequence != "9007199254740993" || len(m.Segments) != 4 || m.Segments[0].MinTime != goldenTime+1 ||
		m.Segments[1].State != "lost" || len(m.Pages) != 1 {
		t.Errorf("%+v", m)
	}
	if !json.Valid([]byte(goldenPage)) {
		t.Error("the page is no JSON")
	}
}

// TestEveryFlip: no single bit of a manifest or a page can change without being found.
func TestEveryFlip(t *testing.T) {
	var m Manifest
	var p PageText
	for _, text := range []string{goldenManifest, goldenPage} {
		b := []byte(text)
		for bit := range 8 * len(b) {
			b[bit/8] ^= 1 << (bit % 8)
			err := Parse(b, &m)
			if text == goldenPage {
				err = ParsePage(b, &p)
			}
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("byte %d, bit %d: %v", bit/8, bit%8, err)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		for n := range len(b) {
			if Parse(b[:n], &m) == nil || ParsePage(b[:n], &p) == nil {
				t.Fatalf("%d bytes are enough", n)
			}
		}
	}
}
