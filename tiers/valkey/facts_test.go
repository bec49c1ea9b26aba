package valkey

import (
	"strings"
	"testing"
)

func TestOutcomes(t *testing.T) {
	for text, want := range map[string]Outcome{
		"ERR The ID specified in XADD is equal or smaller than the target stream top item": Smaller,
		"The ID specified in XADD is equal or smaller than the target stream top item":     Smaller,
		"ERR The ID specified in XADD must be greater than 0-0":                            Smaller,
		"ERR The stream has exhausted the last possible ID, unable to add more items":      Smaller,
		"OOM command not allowed when used memory > 'maxmemory'.":                          Full,
		"READONLY You can't write against a read only replica.":                            ReadOnly,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                WrongType,
		"NOAUTH Authentication required.":                                                  Denied,
		"NOPERM this user has no permissions to run the 'xadd' command":                    Denied,
		"MISCONF Valkey is configured to save RDB snapshots, but it's currently unable":    Misconfigured,
		"NOREPLICAS Not enough good replicas to write.":                                    Misconfigured,
		"LOADING Valkey is loading the dataset in memory":                                  Busy,
		"CLUSTERDOWN The cluster is down":                                                  Busy,
		"ERR something new":                                                                Failed,
		"":                                                                                 Failed,
	} {
		r := refusal(&Reply{Kind: Error, Text: []byte(text)})
		if r.Outcome != want || (r.Text != "") != (want == Denied || want == Failed && text != "") {
			t.Errorf("%q: %+v, want %v", text, r, want)
		}
	}
	for o := range outcomeCount {
		if o.String() == "" || o.String() == "unknown outcome" {
			t.Errorf("outcome %d has no name", o)
		}
	}
	for text, want := range map[string]bool{"MOVED 1 a:1": true, "ASK 1 a:1": true, "MOVEDX": false, "ERR MOVED 1": false} {
		if got := redirected([]Reply{{Kind: Int}, {Kind: Error, Text: []byte(text)}}); got != want {
			t.Errorf("%q redirects: %v", text, got)
		}
	}
}

func TestFindingsOf(t *testing.T) {
	good := Facts{Name: "valkey", Version: "8.0.1", Role: "master", Replicas: 2, Policy: "noeviction", Append: true, Fsync: "always", Tells: true}
	for _, c := range []struct {
		change   func(f *Facts)
		replicas int
		want     Findings
	}{
		{func(*Facts) {}, 1, 0},
		{func(*Facts) {}, 2, 0},
		{func(*Facts) {}, 3, 1 << FewReplicas},
		{func(f *Facts) { f.Replicas = 3 }, 1, 1 << Minority},
		{func(f *Facts) { f.Replicas = 4 }, 2, 0},
		{func(f *Facts) { f.Replicas = 1 }, 0, 1 << Minority},
		{func(f *Facts) { f.Replicas = 0 }, 0, 0},
		{func(f *Facts) { f.Name, f.Version = "redis", "6.0.9" }, 1, 1 << OldVersion},
		{func(f *Facts) { f.Name, f.Version = "redis", "6.2.0" }, 1, 0},
		{func(f *Facts) { f.Name, f.Version = "redis", "10.1" }, 1, 0},
		{func(f *Facts) { f.Name, f.Version = "redis", "unstable" }, 1, 1 << OldVersion},
		{func(f *Facts) { f.Name, f.Version = "", "" }, 1, 1 << UnknownServer},
		{func(f *Facts) { f.Role = "slave" }, 1, 1 << NotPrimary},
		{func(f *Facts) { f.Policy = "allkeys-lru" }, 1, 1 << Evicts},
		{func(f *Facts) { f.Append, f.Saves = false, false }, 1, 1 << Unpersisted},
		{func(f *Facts) { f.Append, f.Saves = false, true }, 1, 1 << Snapshots},
		{func(f *Facts) { f.Fsync = "everysec" }, 1, 1 << LateFsync},
		{func(f *Facts) { f.Tells, f.Fsync = false, "" }, 1, 1 << Unsaid},
	} {
		f := good
		c.change(&f)
		if got := f.judge(c.replicas); got != c.want {
			t.Errorf("%+v for %d: %v, want %v", f, c.replicas, got, c.want)
		}
	}
	all := Findings(1<<findingCount - 1)
	if n := strings.Count(all.String(), "; ") + 1; n < int(findingCount) || strings.Contains(all.String(), "unknown") {
		t.Errorf("%v", all)
	}
}

func TestFactsRead(t *testing.T) {
	var f Facts
	f.read([]byte("# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\nrole:master\r\nslave0:ip=1,port=2,state=online,lag=0\r\n"+
		"slave1:ip=1,port=3,state=wait_bgsave\r\nmaxmemory_policy:volatile-ttl\r\naof_enabled:1\r\nnonsense\r\n:\r\n"), []byte("always"), []byte(""))
	want := Facts{"valkey", "8.0.1", "master", 1, "volatile-ttl", true, "always", false, true}
	if f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	f.read(nil, nil, nil)
	if f != (Facts{}) {
		t.Errorf("of nothing: %+v", f)
	}
}
