package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"varve/tiers/tiertest"
)

// warmConfig is a file of settings with a warm tier.
func warmConfig(t *testing.T, server *tiertest.Process, more string) string {
	t.Helper()
	return configured(t, fmt.Sprintf("segment_bytes: 16KiB\nmin_free_bytes: 0\nwarm:\n  endpoints: [%q]\n  wait_timeout_ms: 10000\n%s", server.Addr, more))
}

// TestWarmCommands: append, read, check and tiers of a log that Valkey mirrors, before and after its disk
// is lost.
func TestWarmCommands(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	root := t.TempDir()
	dir, config := filepath.Join(root, "orders"), warmConfig(t, primary, "  max_cached_closed_segments: 100\n")
	with := func(command string, args ...string) []string {
		return append([]string{"log", command, "--dir", dir, "--config", config}, args...)
	}
	fails(t, root, exitFailed, with("append"), "neither the directory nor the warm tier holds a log; check warm.endpoints")
	r := varveRun(t, "", with("append", "--create", "--count", "500")...)
	if r.code != exitOK || strings.Contains(r.err, "warning") {
		t.Fatalf("%+v", r)
	}
	all := mustRun(t, "", with("read")...)
	if got := primary.Do("TYPE", "varve:{orders}"); got != "stream" {
		t.Fatalf("the key of the log is of type %q", got)
	}
	contains(t, mustRun(t, "", with("tiers")...), "orders   Valkey  [0 ", "WAL     [0 ", "committed 500")
	contains(t, mustRun(t, "", with("check", "--deep")...), "warm      "+primary.Addr+" varve:{orders} holds [0, 500)", "verified  500 records", "verdict   clean")

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	var m tiersReport
	if err := json.Unmarshal([]byte(mustRun(t, "", with("tiers", "--json")...)), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Tiers) != 2 || m.Tiers[0].Tier != "warm" || m.Tiers[0].End != 500 || m.Tiers[0].Bytes < 500*128 || m.Tiers[1].Segments != 0 {
		t.Fatalf("%+v", m)
	}
	fails(t, root, exitFailed, with("read"), "offset 0 is in the warm tier alone; the next open for appends copies it to the disk")
	contains(t, mustRun(t, "", with("check", "--deep")...), "alone     [0, ", "of epoch 1 from the warm tier into a file of its own", "verdict   clean")
	r = varveRun(t, "", with("append", "--count", "10")...)
	contains(t, r.err, "the directory held no log: it was rebuilt from "+primary.Addr+" varve:{orders}, offsets [0, 500)")
	if got := mustRun(t, "", with("read", "--max", "500")...); got != all {
		t.Fatal("the log is not what it was")
	}
	contains(t, mustRun(t, "", with("check", "--deep", "--generated")...), "510 are generated records with the right content")
}

// TestWarmBadInput: what a warm tier can be given, or be, that is wrong. Each is one line that says where,
// what was expected and what to do, and nothing is changed.
func TestWarmBadInput(t *testing.T) {
	primary, _ := tiertest.StartPair(t)
	root := t.TempDir()
	dir := filepath.Join(root, "orders")
	mustRun(t, "x\n", "log", "append", "--create", "--dir", dir, "--config", warmConfig(t, primary, ""))
	other := filepath.Join(root, "other")
	mustRun(t, "x\n", "log", "append", "--create", "--dir", other, "--config", warmConfig(t, primary, ""))
	primary.Do("SET", "varve:{text}", "x")
	primary.Do("XADD", "varve:{foreign}", "5-5", "some", "thing")
	fresh := filepath.Join(root, "fresh")
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("guess\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	locked := tiertest.StartValkey(t, "requirepass secret", "save ")
	gone := tiertest.StartValkey(t, "save ")
	gone.Kill()
	for name, c := range map[string]struct {
		dir    string
		server *tiertest.Process
		more   string
		want   []string
	}{
		"nobody listens":            {fresh, gone, "", []string{"warm.endpoints: the warm tier has to say what the log holds, and does not answer", "connect to " + gone.Addr, "connection refused"}},
		"no password":               {dir, locked, "", []string{"warm.endpoints: ", "connect to " + locked.Addr + ": credentials refused", "set warm.username and warm.password_file"}},
		"wrong password":            {dir, locked, "  password_file: " + secret, []string{"credentials refused", "set warm.username and warm.password_file"}},
		"no such file":              {dir, primary, "  password_file: " + secret + "x", []string{"warm.password_file: ", secret + "x", "no such file"}},
		"a key of another type":     {fresh, primary, "  name: text", []string{primary.Addr + " varve:{text}", "the key holds what no log wrote; give the log another warm.name, or remove the key"}},
		"entries of somebody else":  {fresh, primary, "  name: foreign", []string{"varve:{foreign}", "the key holds what no log wrote"}},
		"the stream of another log": {dir, primary, "  name: other", []string{"varve:{other}", "the key holds another log; check warm.endpoints and warm.name: a log needs a key of its own"}},
		"TLS to who talks none":     {fresh, primary, "  tls: true", []string{"warm.endpoints: the warm tier has to say", "connect to " + primary.Addr + ": TLS handshake: context deadline exceeded"}},
		"no certificates":           {dir, primary, "  tls: true\n  tls_ca_file: " + secret, []string{"warm.tls_ca_file: " + secret + ": expected certificates in PEM, found none"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := warmConfig(t, c.server, c.more)
			r := fails(t, root, exitFailed, []string{"log", "append", "--create", "--dir", c.dir, "--config", config}, c.want...)
			if strings.Contains(r.err, "guess") {
				t.Errorf("the password is in %q", r.err)
			}
		})
	}
	for name, c := range map[string]struct{ key, why string }{ // what is on disk is shown all the same, and what it is that cannot be read
		"text":    {"varve:{text}", "holds what no log wrote"},
		"foreign": {"varve:{foreign}", "holds what no log wrote"},
		"other":   {"varve:{other}", "holds another log"},
		"locked":  {locked.Addr, "set warm.username and warm.password_file"},
	} {
		server := primary
		if name == "locked" {
			server = locked
		}
		config := warmConfig(t, server, "  name: "+name)
		for _, command := range []string{"read", "check", "tiers"} {
			r := varveRun(t, "", "log", command, "--dir", dir, "--config", config)
			contains(t, r.out, map[string]string{"read": "x\n", "check": "proven", "tiers": "WAL"}[command])
			contains(t, r.err, server.Addr, c.key, c.why)
			if (r.code == exitOK) != (command == "read") {
				t.Errorf("%s with %s: exit %d", command, name, r.code)
			}
		}
	}
	bad := filepath.Join(root, "a b")
	fails(t, root, exitFailed, []string{"log", "append", "--create", "--dir", bad, "--config", warmConfig(t, primary, "")},
		"the log cannot be called so in the warm tier", "set warm.name")
}

// TestWarmServerIsUnsafe: a server that may lose what it confirmed is used, and said to be one.
func TestWarmServerIsUnsafe(t *testing.T) {
	s := tiertest.StartValkey(t, "save ", "maxmemory 100mb", "maxmemory-policy allkeys-lru")
	dir := filepath.Join(t.TempDir(), "orders")
	r := varveRun(t, "x\n", "log", "append", "--create", "--dir", dir, "--config", warmConfig(t, s, "  wait_replicas: 0"))
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	contains(t, r.err, "varve: warning: the warm tier may lose what it confirmed; finding: maxmemory-policy is not noeviction",
		"the server persists nothing: a restart loses every entry; set appendonly yes")
}

// TestWarmServerStops: what an append says that no replica confirms, and a look that nobody answers.
func TestWarmServerStops(t *testing.T) {
	primary, replica := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "orders")
	config := warmConfig(t, primary, "")
	with := func(command string, args ...string) []string {
		return append([]string{"log", command, "--dir", dir, "--config", config, "--warm-wait-timeout-ms", "200"}, args...)
	}
	mustRun(t, "x\n", with("append", "--create")...)
	replica.Kill()
	tierWait = 2e9
	defer func() { tierWait = 30e9 }()
	r := varveRun(t, "x\n", with("append")...)
	if r.code != exitFailed {
		t.Fatalf("%+v", r)
	}
	contains(t, r.err, "waiting up to 2s: 0 replicas of the warm tier confirmed in time, and warm.wait_replicas is 1")
	primary.Kill()
	r = varveRun(t, "", "log", "check", "--dir", dir, "--config", config)
	if r.code != exitFailed {
		t.Fatalf("%+v", r)
	}
	contains(t, r.err, "the warm tier does not answer: ", "connect to "+primary.Addr)
	contains(t, r.out, "verdict   incomplete")
	r = varveRun(t, "", "log", "read", "--dir", dir, "--config", config)
	if r.code != exitOK || r.out != "x\n" {
		t.Fatalf("%+v", r)
	}
	contains(t, r.err, "warning: the warm tier does not answer: look at the warm tier: ", "what it alone holds is not shown")
	r = varveRun(t, "", "log", "tiers", "--dir", dir, "--config", config)
	contains(t, r.out, "Valkey  does not answer")
}

// TestWarmUserLacksACommand: the error names the user and the command, and says what to do.
func TestWarmUserLacksACommand(t *testing.T) {
	defer func(d time.Duration) { tierWait = d }(tierWait)
	tierWait = time.Second
	primary, _ := tiertest.StartPair(t)
	dir := filepath.Join(t.TempDir(), "orders")
	mustRun(t, "x\n", "log", "append", "--create", "--dir", dir, "--config", warmConfig(t, primary, ""))
	secret := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := warmConfig(t, primary, "  username: k1\n  password_file: "+secret)
	all := []string{
		"+xadd", "+xrange", "+xrevrange", "+xlen", "+xinfo|stream", "+xtrim", "+type", "+wait", "+role", "+info", "+config|get", "+client|id",
	}
	for i, command := range map[int]string{0: "xadd", 1: "xrange", 2: "xrevrange"} {
		primary.Do(append([]string{"ACL", "SETUSER", "k1", "reset", "on", ">secret", "~varve:{orders}"}, slices.Delete(slices.Clone(all), i, i+1)...)...)
		r := varveRun(t, "x\n", "log", "append", "--dir", dir, "--config", config)
		contains(t, r.err, "NOPERM User k1 has no permissions to run the '"+command+"' command", "give the user its commands")
		if r.code != exitFailed || strings.Contains(r.err, "expected a Valkey server") || strings.Contains(r.err, "mirrored: 0") {
			t.Errorf("without %s: %+v", command, r)
		}
	}
	primary.Do(append([]string{"ACL", "SETUSER", "k1", "reset", "on", ">secret", "~varve:{orders}"}, all...)...)
	mustRun(t, "x\n", "log", "append", "--dir", dir, "--config", config)
}
