package topics

import (
	"bytes"
	"strings"
	"testing"
)

var goldenID = ID{0x0f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff}

// golden is every kind of entry with its text.
var golden = []struct {
	e    Entry
	text string
}{
	{Entry{Kind: Begin, Topic: "a", Incarnation: 1, Count: 2}, `{"v":1,"type":"begin","topic":"a","incarnation":1,"partitions":2}`},
	{
		Entry{Kind: Create, Topic: "a", ID: goldenID, Incarnation: 1, Count: 2, Time: 1700000000000, Config: []Pair{{"retention.ms", "7"}, {"segment.ms", "8"}}},
		`{"v":1,"type":"create","topic":"a","id":"0f0102030405060708090a0b0c0d0eff","incarnation":1,"partitions":2,"time":1700000000000,"config":{"retention.ms":"7","segment.ms":"8"}}`,
	},
	{Entry{Kind: Grow, Topic: "a", Incarnation: 1, Count: 3}, `{"v":1,"type":"grow","topic":"a","incarnation":1,"partitions":3}`},
	{Entry{Kind: Partitions, Topic: "a", Incarnation: 1, Count: 3}, `{"v":1,"type":"partitions","topic":"a","incarnation":1,"partitions":3}`},
	{Entry{Kind: Shrunk, Topic: "a", Incarnation: 1}, `{"v":1,"type":"shrunk","topic":"a","incarnation":1}`},
	{Entry{Kind: Configure, Topic: "a", Incarnation: 1}, `{"v":1,"type":"config","topic":"a","incarnation":1,"config":{}}`},
	{Entry{Kind: Delete, Topic: "a", Incarnation: 1}, `{"v":1,"type":"delete","topic":"a","incarnation":1}`},
	{Entry{Kind: Gone, Topic: "a", Incarnation: 1}, `{"v":1,"type":"gone","topic":"a","incarnation":1}`},
	{Entry{Kind: Producers, Count: 1000}, `{"v":1,"type":"producers","next":1000}`},
	{
		Entry{Kind: Snapshot, Incarnation: 9, Count: 1000, Topics: []Topic{
			{Name: "a", ID: goldenID, Incarnation: 1, Partitions: 2, Growing: 3, Status: Live, Time: 5, Config: []Pair{{"retention.ms", "7"}}},
			{Name: "b", Incarnation: 3, Partitions: 1, Status: Dead},
		}},
		`{"v":1,"type":"snapshot","incarnation":9,"producers":1000,"topics":[` +
			`{"state":"live","topic":"a","id":"0f0102030405060708090a0b0c0d0eff","incarnation":1,"partitions":2,"growing":3,"time":5,"config":{"retention.ms":"7"}},` +
			`{"state":"dead","topic":"b","id":"00000000000000000000000000000000","incarnation":3,"partitions":1,"growing":0,"time":0,"config":{}}]}`,
	},
}

// TestText compares entries with their text, both ways. What was written once is read for ever: a text
// here never changes.
func TestText(t *testing.T) {
	var r Reader
	var e Entry
	for _, x := range golden {
		if b := AppendEntry(nil, &x.e); string(b) != x.text {
			t.Errorf("written %s, want %s", b, x.text)
		}
		if err := r.Read([]byte(x.text), &e); err != nil {
			t.Errorf("%s: %v", x.text, err)
		} else if b := AppendEntry(nil, &e); string(b) != x.text {
			t.Errorf("read and written %s, want %s", b, x.text)
		}
		for n := range len(x.text) {
			if r.Read([]byte(x.text[:n]), &e) == nil {
				t.Errorf("%s is an entry", x.text[:n])
			}
		}
	}
	for _, x := range []struct{ text, want string }{
		{``, "expected {\"v\":, found the end"},
		{`{"v":2,"type":"later"}`, "version 2, this program reads up to 1"},
		{`{"v":1,"type":"other"}`, "byte 15: expected a known word"},
		{`{"v":1,"type":"gone","topic":"..","incarnation":1}`, "the name of a topic"},
		{`{"v":1,"type":"gone","topic":"a/b","incarnation":1}`, "the name of a topic"},
		{`{"v":1,"type":"gone","topic":"a","incarnation":01}`, "a number from 1"},
		{`{"v":1,"type":"gone","topic":"a","incarnation":0}`, "a number from 1"},
		{`{"v":1,"type":"gone","topic":"a","incarnation":9999999999999999999}`, "a number from 1"},
		{`{"v":1,"type":"gone","topic":"a","incarnation":1} `, "expected the end"},
		{`{"v":1,"type":"config","topic":"a","incarnation":1,"config":{"b":"1","a":"2"}}`, "names in order"},
		{`{"v":1,"type":"config","topic":"a","incarnation":1,"config":{"a":"\u0000"}}`, `expected "`},
		{`{"v":1,"type":"create","topic":"a","id":"zz`, "32 hexadecimal digits"},
	} {
		if err := r.Read([]byte(x.text), &e); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.text, err, x.want)
		}
	}
}

// FuzzEntry: what is read as an entry is exactly the text that is written of it.
func FuzzEntry(f *testing.F) {
	for _, x := range golden {
		f.Add([]byte(x.text))
	}
	var r Reader
	var e Entry
	f.Fuzz(func(t *testing.T, b []byte) {
		if r.Read(b, &e) != nil {
			return
		}
		if again := AppendEntry(nil, &e); !bytes.Equal(again, b) {
			t.Fatalf("read %q, written %q", b, again)
		}
	})
}

// TestNames: what may name a topic, before it reaches any file, key or command.
func TestNames(t *testing.T) {
	for _, good := range []string{"a", "A.b_c-9", "...", ".a", "-", "a.b", "a_b", strings.Repeat("x", NameBytesMax)} {
		if err := CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", "a/b", "../a", "/", `a\b`, "a b", "a\x00", "a\n", "é", "a:b", "a*", "a{b}", "%2e%2e",
		strings.Repeat("x", NameBytesMax+1), strings.Repeat("../", 1<<15), "a\xff",
	} {
		err := CheckName(bad)
		if err == nil {
			t.Errorf("%.40q may name a topic", bad)
		} else if len(err.Error()) > 200 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
}

// TestConfig: what a topic may set.
func TestConfig(t *testing.T) {
	for _, x := range []struct {
		name, value, want string
		tiered            bool
	}{
		{name: "retention.ms", value: "-1"},
		{name: "retention.ms", value: "9223372036854775807"},
		{name: "local.retention.ms", value: "-2"},
		{name: "cleanup.policy", value: "delete"},
		{name: "compression.type", value: "producer"},
		{name: "message.timestamp.type", value: "CreateTime"},
		{name: "message.timestamp.type", value: "LogAppendTime"},
		{name: "flush.messages", value: "9223372036854775807"},
		{name: "min.insync.replicas", value: "1"},
		{name: "remote.storage.enable", value: "true", tiered: true},
		{name: "follower.replication.throttled.replicas", value: ""},
		{name: "remote.storage.enable", value: "true", want: "false: it is the node's"},
		{name: "retention.ms", value: "-2", want: "a number from 1 to 9223372036854775807, or -1"},
		{name: "retention.bytes", value: "0", want: "a number from 1"},
		{name: "retention.ms", value: "1e3", want: "a number"},
		{name: "retention.ms", value: "+1", want: "a number"},
		{name: "segment.bytes", value: "100", want: "from 1024"},
		{name: "max.message.bytes", value: "1073741825", want: "to 1073741824"},
		{name: "cleanup.policy", value: "compact", want: "never by key"},
		{name: "cleanup.policy", value: "compact,delete", want: "never by key"},
		{name: "compression.type", value: "zstd", want: "as they came"},
		{name: "message.timestamp.type", value: "logappendtime", want: "CreateTime or LogAppendTime"},
		{name: "message.timestamp.type", value: "", want: "CreateTime or LogAppendTime"},
		{name: "flush.messages", value: "1", want: "node's policy"},
		{name: "min.insync.replicas", value: "2", want: "on one node"},
		{name: "no.such.key", value: "1", want: "no topic has this setting"},
	} {
		err := CheckConfig([]Pair{{x.name, x.value}}, x.tiered)
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s = %s: %v", x.name, x.value, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), x.name)):
			t.Errorf("%s = %s: %v, want %s", x.name, x.value, err, x.want)
		}
	}
	if CheckConfig([]Pair{{"retention.ms", "1"}, {"retention.ms", "2"}}, false) == nil {
		t.Error("a key is given twice")
	}
	last := ""
	for _, k := range Keys(nil) {
		if k.Name <= last || k.Doc == "" {
			t.Errorf("key %s behind %s", k.Name, last)
		}
		last = k.Name
	}
}
