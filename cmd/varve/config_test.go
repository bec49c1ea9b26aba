package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// configured writes a file of settings.
func configured(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "varve.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// explained runs config explain.
func explainedJSON(t *testing.T, args ...string) (x explanation) {
	t.Helper()
	out := mustRun(t, "", append([]string{"config", "explain", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return x
}

func (x *explanation) setting(name string) keyValue {
	for _, k := range x.Settings {
		if k.Key == name {
			return k
		}
	}
	return keyValue{}
}

// allKeys sets every key to a value that is not its default.
const allKeys = `
fsync_mode: periodic
fsync_interval_ms: 20
segment_bytes: 128MiB
segment_age: 2h
index_spacing_bytes: 8192
max_batch_bytes: 1MiB
pending_bytes: 2MiB
min_free_bytes: 1
preallocate: false
retention_bytes: 1TiB
retention_age: 720h
local_retention_bytes: 10GiB
local_retention_age: 24h
retention_check_interval: 30s
verify_all_on_open: true
repair_checksum_tail: true
allow_damaged: true
accept_loss: true
create: true
warm:
  endpoints: [one:6379, "two:6380"]
  wait_replicas: 2
  wait_timeout_ms: 50
  on_wait_timeout: ack
  max_cached_closed_segments: 3
  max_bytes: 3GiB
  name: orders-0
  servers: sentinel
  sentinel_master: orders
  username: orders
  password_file: /etc/varve/password
  sentinel_username: watcher
  sentinel_password_file: /etc/varve/sentinel
  tls: true
  tls_ca_file: /etc/varve/ca.pem
  tls_cert_file: /etc/varve/cert.pem
  tls_key_file: /etc/varve/key.pem
cold:
  url: s3://bucket/some/prefix
  name: orders/0
  endpoint: http://localhost:9000
  region: eu-west-1
  path_style: never
  sse: aws:kms
  sse_kms_key: alias/varve
  part_bytes: 16MiB
  max_upload_age: 10m
dir: /srv/varve
listen: 0.0.0.0:9093
advertise: varve.example:9093
admin: "[::1]:9645"
allow_plaintext: true
pprof: true
drain_timeout: 1m
auto_create: false
partitions: 8
partitions_max: 100
`

// TestConfigFileSetsEveryKey: each key of the table can be set in a file, and is known to come from there.
func TestConfigFileSetsEveryKey(t *testing.T) {
	path := configured(t, allKeys)
	x := explainedJSON(t, "--config", path)
	if len(x.Settings) != len(table) {
		t.Fatalf("%d settings of %d", len(x.Settings), len(table))
	}
	set, plain := defaults(), defaults()
	f, err := readConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(allKeys, "\n")
	for i := range table {
		k := &table[i]
		v, ok := f.values[k.name]
		if !ok {
			t.Errorf("%s is not in the file of this test", k.name)
			continue
		}
		if err := k.set(set, v.text); err != nil {
			t.Error(err)
		}
		if k.text(set) == k.text(plain) {
			t.Errorf("%s has its default, %s", k.name, k.text(plain))
		}
		if !strings.Contains(lines[v.line-1], lastPart(k.name)+":") {
			t.Errorf("%s is said to be in line %d, %q", k.name, v.line, lines[v.line-1])
		}
		if got := x.setting(k.name); got.Value != k.text(set) || !strings.HasPrefix(got.Source, path+", line ") {
			t.Errorf("%s: %+v, want %s", k.name, got, k.text(set))
		}
	}
	if want := []string{"one:6379", "two:6380"}; !reflect.DeepEqual(set.WarmEndpoints, want) || set.ColdMaxUploadAge != ageLimit(10*time.Minute) {
		t.Errorf("%+v", set)
	}
}

// TestConfigPrecedence: a flag overrides the environment, that the file, that the default; also where
// the file is named by the environment.
func TestConfigPrecedence(t *testing.T) {
	path := configured(t, "segment_bytes: 4MiB\npending_bytes: 32MiB\nfsync_mode: none\n")
	want := func(x explanation, key, value, source string) {
		t.Helper()
		if got := x.setting(key); got.Value != value || got.Source != source {
			t.Errorf("%s: %+v, want %s from %s", key, got, value, source)
		}
	}
	t.Setenv("VARVE_PENDING_BYTES", "64MiB")
	t.Setenv("VARVE_FSYNC_MODE", "periodic")
	for _, args := range [][]string{{"--config", path}, nil} {
		x := explainedJSON(t, append(args, "--fsync", "on_commit", "--no-preallocate")...)
		want(x, "segment_bytes", "4194304", path+", line 1")
		want(x, "pending_bytes", "67108864", "VARVE_PENDING_BYTES")
		want(x, "fsync_mode", "on_commit", "--fsync")
		want(x, "preallocate", "false", "--preallocate")
		want(x, "max_batch_bytes", "16777216", "default")
		t.Setenv("VARVE_CONFIG", path)
	}
	want(explainedJSON(t, "--fsync-mode=none"), "fsync_mode", "none", "--fsync")

	// And it is what a log really gets: segments of 4 KiB.
	path = configured(t, "segment_bytes: 4KiB\nmin_free_bytes: 0\n")
	dir := t.TempDir() + "/log"
	mustRun(t, "", "log", "append", "--dir", dir, "--config", path, "--count", "100")
	if n := len(segments(t, dir)); n < 5 {
		t.Errorf("%d segments", n)
	}
	for _, command := range []string{"read", "check", "dump", "repair"} {
		mustRun(t, "", "log", command, "--dir", dir, "--config", path)
	}
}

// TestConfigErrors: a file that cannot be is refused by every command, with file, line, key, what was
// expected and what was found, and before anything is done.
func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"segment_byte: 1", 1, "segment_byte: expected a key that there is (segment_bytes?), found an unknown one"},
		{"\n\nurl: s3://x", 3, "url: expected a key that there is (url in section cold?), found an unknown one"},
		{"cold.url: s3://x", 1, "cold.url: expected a key that there is (url in section cold?), found an unknown one"},
		{"cold:\n  wait_replicas: 1", 2, "cold.wait_replicas: expected a key that there is (wait_replicas in section warm?), found an unknown one"},
		{"warm:\n  segment_bytes: 1", 2, "warm.segment_bytes: expected a key that there is (segment_bytes?), found an unknown one"},
		{"zzzzzzzz: 1", 1, "zzzzzzzz: expected a key that there is, found an unknown one"},
		{"create: true\ncreate: true", 2, "create: expected each key once, found it in line 1, too"},
		{"warm:\n  max_bytes: 1\n  max_bytes: 2", 3, "warm.max_bytes: expected each key once, found it in line 2, too"},
		{"cold: {}\ncold: {}", 2, "cold: expected each key once, found it in line 1, too"},
		{"- a", 1, "the file: expected keys and values, found a list"},
		{"hello", 1, `the file: expected keys and values, found "hello"`},
		{"cold: s3://x", 1, `section cold: expected keys and values, found "s3://x"`},
		{"1: 2", 1, "the file: expected the name of a key, found 1"},
		{"[a]: 2", 1, "the file: expected the name of a key, found a list"},
		{"create: true\n---\ncreate: true", 2, "the file: expected one YAML document, found another one behind it"},
		{"a: &x {}\n", 1, "a: expected a key that there is, found an unknown one"},
		{"warm: &x {}\ncold: *x", 2, "section cold: expected keys and values, found an alias"},
		{"fsync_mode: " + strings.Repeat("x", 100), 1, `fsync_mode: expected on_commit, periodic or none, found "` + strings.Repeat("x", 80) + `..."`},
		{"<<: {create: true}", 1, `the file: expected the name of a key, found "<<" (!!merge)`},
		{"segment_bytes: many", 1, `segment_bytes: expected a number of bytes, such as 1048576 or 1MiB, found "many"`},
		{"segment_bytes: 1.5", 1, "segment_bytes: expected a number of bytes, such as 1048576 or 1MiB, found 1.5"},
		{"segment_bytes: -1", 1, "segment_bytes: expected a number of bytes, such as 1048576 or 1MiB, found -1"},
		{"segment_bytes: [1]", 1, "segment_bytes: expected a number of bytes, such as 1048576 or 1MiB, found a list"},
		{"segment_bytes:", 1, "segment_bytes: expected a number of bytes, such as 1048576 or 1MiB, found nothing"},
		{"segment_bytes: 9223372036854775808", 1, "segment_bytes: expected a number of bytes, such as 1048576 or 1MiB, found 9223372036854775808"},
		{"retention_bytes: 0", 1, "retention_bytes: expected a number of bytes above 0, such as 1048576 or 1MiB, or -1 for unlimited, found 0"},
		{"segment_age: 60", 1, "segment_age: expected a duration above 0, such as 24h, or -1 for unlimited, found 60"},
		{"retention_check_interval: 60", 1, "retention_check_interval: expected a duration, such as 60s, found 60"},
		{"retention_check_interval: -1s", 1, "retention_check_interval: expected above 0, found -1s"},
		{"preallocate: yes please", 1, `preallocate: expected true or false, found "yes please"`},
		{"preallocate: 1", 1, "preallocate: expected true or false, found 1"},
		{"preallocate: \"true\"", 1, `preallocate: expected true or false, found "true"`},
		{"fsync_mode: always", 1, `fsync_mode: expected on_commit, periodic or none, found "always"`},
		{"fsync_mode: {}", 1, "fsync_mode: expected on_commit, periodic or none, found keys and values"},
		{"fsync_interval_ms: \"5\"", 1, `fsync_interval_ms: expected a whole number, found "5"`},
		{"fsync_interval_ms: 0", 1, "fsync_interval_ms: expected 1 ms to 36 years, found 0"},
		{"fsync_interval_ms: 9223372036854775807", 1, "fsync_interval_ms: expected 1 ms to 36 years, found 9223372036854775807"},
		{"create: true\nsegment_bytes: 1000", 2, "segment_bytes: expected two sectors up to 1 TiB, found 1000"},
		{"max_batch_bytes: 32MiB\npending_bytes: 1MiB", 2, "pending_bytes: expected at least max_batch_bytes (33554432), found 1048576; max_batch_bytes is from FILE, line 1"},
		{"warm:\n  endpoints: one:6379", 2, `warm.endpoints: expected a list of strings, found "one:6379"`},
		{"warm:\n  endpoints: [one]", 2, `warm.endpoints: expected host:port, found "one"`},
		{"warm:\n  endpoints: [\"one:x\"]", 2, `warm.endpoints: expected host:port, found "one:x"`},
		{"warm:\n  endpoints: [\"a:1,b:2\"]", 2, "warm.endpoints: expected a list of strings, found a list"},
		{"warm:\n  endpoints: [\"a:1\", \"a:1\"]", 2, `warm.endpoints: expected each server once, found "a:1"`},
		{"warm:\n  endpoints: [\"a:1\", \"b:1\"]", 2, "warm.endpoints: expected one server, or several where warm.servers is cluster or sentinel, found 2 of them"},
		{"warm:\n  servers: many", 2, `warm.servers: expected single, cluster or sentinel, found "many"`},
		{"warm:\n  servers: cluster", 2, `warm.servers: expected single without warm.endpoints, found "cluster"`},
		{"warm:\n  endpoints: [\"a:1\"]\n  servers: sentinel", 0, `warm.sentinel_master: expected what sentinels call the primary, where warm.servers is sentinel, and elsewhere it to be unset, found ""; warm.servers is from FILE, line 3`},
		{"warm:\n  name: orders", 2, `warm.name: expected it to be unset without warm.endpoints, found "orders"`},
		{"warm:\n  endpoints: [\"a:1\"]\n  name: ../x", 3, `warm.name: expected up to 249 letters, digits, '.', '_' and '-', and no name of a folder, found "../x"`},
		{"warm:\n  endpoints: [\"a:1\"]\n  name: x}{y", 3, `warm.name: expected up to 249 letters, digits, '.', '_' and '-', and no name of a folder, found "x}{y"`},
		{"warm:\n  endpoints: [\"a:1\"]\n  tls_ca_file: /x", 3, `warm.tls_ca_file: expected it to be unset without warm.tls, found "/x"`},
		{"warm:\n  endpoints: [\"a:1\"]\n  tls: true\n  tls_cert_file: /x", 0, `warm.tls_key_file: expected it to be set with warm.tls_cert_file, and without that unset, found ""; warm.tls_cert_file is from FILE, line 4`},
		{"warm:\n  wait_replicas: -1", 2, "warm.wait_replicas: expected 0 to 100, found -1"},
		{"warm:\n  wait_timeout_ms: 0", 2, "warm.wait_timeout_ms: expected 1 ms to an hour, found 0"},
		{"warm:\n  on_wait_timeout: hope", 2, `warm.on_wait_timeout: expected fail or ack, found "hope"`},
		{"warm:\n  max_cached_closed_segments: -1", 2, "warm.max_cached_closed_segments: expected 0 to 1000000, found -1"},
		{"cold:\n  url: http://x", 2, `cold.url: expected s3://bucket/prefix or file:///directory, found "http://x"`},
		{"cold:\n  url: s3://", 2, `cold.url: expected s3:// and the name of a bucket, found "s3://"`},
		{"cold:\n  url: s3://key:secret@bucket", 2, `cold.url: expected a place without user, password, ? and #; credentials come from the environment of the SDK, found "s3://key:xxxxx@bucket"`},
		{"cold:\n  url: s3://key:secret%@bucket", 2, `cold.url: expected s3://bucket/prefix or file:///directory, found "...@bucket"`},
		{"cold:\n  url: s3://bucket/../other", 2, `cold.url: expected a prefix of plain names with one / between two, found "s3://bucket/../other"`},
		{"cold:\n  url: file://host/dir", 2, `cold.url: expected file:// and an absolute path, such as file:///srv/varve, found "file://host/dir"`},
		{"cold:\n  url: file:///a/../../etc", 2, `cold.url: expected file:// and an absolute path, such as file:///srv/varve, found "file:///a/../../etc"`},
		{"cold:\n  url: file:///", 2, `cold.url: expected file:// and an absolute path, such as file:///srv/varve, found "file:///"`},
		{"cold:\n  endpoint: http://x", 2, `cold.endpoint: expected it to be unset without a cold.url of s3://, found "http://x"`},
		{"cold:\n  url: file:///x\n  endpoint: http://x", 3, `cold.endpoint: expected it to be unset without a cold.url of s3://, found "http://x"; cold.url is from FILE, line 2`},
		{"cold:\n  url: s3://x\n  endpoint: x:9000", 3, `cold.endpoint: expected http:// or https:// with a host, and nothing behind it, found "x:9000"`},
		{"cold:\n  url: s3://x\n  endpoint: http://me:secret@x", 3, `cold.endpoint: expected http:// or https:// with a host, and nothing behind it, found "http://me:xxxxx@x"`},
		{"cold:\n  name: x", 2, `cold.name: expected it to be unset without a cold.url, found "x"`},
		{"cold:\n  url: s3://x\n  name: ..", 3, `cold.name: expected plain names with one / between two, found ".."`},
		{"cold:\n  url: s3://x\n  name: a/../../b", 3, `cold.name: expected plain names with one / between two, found "a/../../b"`},
		{"cold:\n  url: s3://x\n  name: /a", 3, `cold.name: expected plain names with one / between two, found "/a"`},
		{"cold:\n  url: s3://x\n  name: \"a\\0\"", 3, `cold.name: expected plain names with one / between two, found "a\x00"`},
		{"cold:\n  url: s3://x\n  name: " + strings.Repeat("y", 300), 3, `cold.name: expected plain names with one / between two, found "` + strings.Repeat("y", 80) + `"`},
		{"cold:\n  region: x", 2, `cold.region: expected it to be unset without a cold.url of s3://, found "x"`},
		{"cold:\n  part_bytes: 1MiB", 2, "cold.part_bytes: expected 5 MiB to 5 GiB, found 1048576"},
		{"segment_bytes: 100GiB\ncold:\n  url: s3://x", 0, "cold.part_bytes: expected more than segment_bytes (107374182400) / 10000, found 8388608; segment_bytes is from FILE, line 1"},
		{"cold:\n  max_upload_age: 5ms", 2, "cold.max_upload_age: expected 1 s or more, or -1 for unlimited, found 5ms"},
		{"cold:\n  url: s3://x\n  path_style: \"true\"", 3, `cold.path_style: expected auto, always or never, found "true"`},
		{"cold:\n  url: file:///x\n  path_style: always", 3, `cold.path_style: expected auto without a cold.url of s3://, found "always"; cold.url is from FILE, line 2`},
		{"cold:\n  url: s3://x\n  sse: aws:kmsx", 3, `cold.sse: expected none, AES256, aws:kms or aws:kms:dsse, found "aws:kmsx"`},
		{"cold:\n  url: file:///x\n  sse: AES256", 3, `cold.sse: expected none without a cold.url of s3://, found "AES256"; cold.url is from FILE, line 2`},
		{"cold:\n  url: s3://x\n  sse: AES256\n  sse_kms_key: k", 4, `cold.sse_kms_key: expected it to be unset without a cold.sse of aws:kms, found "k"; cold.sse is from FILE, line 3`},
	} {
		path := configured(t, c.text)
		want := path + ", line " + string(rune('0'+c.line)) + ", " + strings.ReplaceAll(c.want, "FILE", path)
		if c.line == 0 {
			want = "the default, " + strings.ReplaceAll(c.want, "FILE", path)
		}
		r := varveRun(t, "", "config", "explain", "--config", path)
		if r.code != exitUsage || r.err != "varve: "+want+"; run: varve --help\n" || r.out != "" {
			t.Errorf("%q: exit %d\n got %s\nwant varve: %s", c.text, r.code, r.err, want)
		}
	}
}

// TestConfigThatIsNone: what cannot be read, or is no file of settings.
func TestConfigThatIsNone(t *testing.T) {
	dir := t.TempDir()
	big := configured(t, strings.Repeat("# comment\n", fileBytesMax/10+1))
	odd := configured(t, "a: [1\nb: 2\n")
	for path, want := range map[string]string{
		dir + "/absent": "no such file", dir: "is a directory", big: "at most 1048576 bytes", odd: odd + ": line ", "": "--config is empty",
		configured(t, "a: *x"):                      "unknown anchor",
		configured(t, "create: true\n\tx"):          "expected YAML",
		configured(t, "create: \xff\xfe"):           "expected YAML",
		configured(t, "create: true\n--- [\n") + "": "one YAML document",
	} {
		for _, args := range [][]string{{"config", "explain"}, {"log", "append", "--dir", dir + "/log"}, {"log", "read", "--dir", dir + "/log"}} {
			r := varveRun(t, "x\n", append(args, "--config", path)...)
			if r.code != exitUsage || !strings.Contains(r.err, want) || strings.Count(r.err, "\n") != 1 {
				t.Errorf("%s: exit %d, %s, want %s", path, r.code, r.err, want)
			}
		}
	}
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "warm:\ncold: {}\n"} {
		if x := explainedJSON(t, "--config", configured(t, text)); x.setting("segment_bytes").Source != "default" {
			t.Errorf("%q: %+v", text, x)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("refused, and yet there is %v", entries)
	}
}

// TestCF5InvalidCombinationNamesItsSources: the culprit of a collision may be a variable or a flag.
func TestCF5InvalidCombinationNamesItsSources(t *testing.T) {
	dir := t.TempDir()
	path := configured(t, "max_batch_bytes: 8MiB\n")
	t.Setenv("VARVE_PENDING_BYTES", "1MiB")
	r := varveRun(t, "x\n", "log", "append", "--dir", dir+"/log", "--config", path)
	want := "varve: VARVE_PENDING_BYTES, pending_bytes: expected at least max_batch_bytes (8388608), found 1048576; max_batch_bytes is from " + path + ", line 1; run: varve --help\n"
	if r.code != exitUsage || r.err != want {
		t.Errorf("exit %d\n got %swant %s", r.code, r.err, want)
	}
	r = varveRun(t, "x\n", "log", "append", "--dir", dir+"/log", "--pending-bytes", "64MiB", "--max-batch-bytes", "128MiB")
	want = "varve: --pending-bytes, pending_bytes: expected at least max_batch_bytes (134217728), found 67108864; max_batch_bytes is from --max-batch-bytes; run: varve --help\n"
	if r.code != exitUsage || r.err != want {
		t.Errorf("exit %d\n got %swant %s", r.code, r.err, want)
	}
	r = varveRun(t, "", "log", "read", "--dir", dir+"/log", "--cold-url", "ftp://x")
	if want = "varve: --cold-url, cold.url: expected s3://bucket/prefix or file:///directory, found \"ftp://x\"; run: varve --help\n"; r.code != exitUsage || r.err != want {
		t.Errorf("exit %d\n got %swant %s", r.code, r.err, want)
	}
	t.Setenv("VARVE_MAX_BATCH_BYTES", "many") // the file does not make good what overrides it
	fails(t, dir, exitUsage, []string{"log", "append", "--dir", dir + "/log", "--config", path}, "VARVE_MAX_BATCH_BYTES", "many")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("refused, and yet there is %v", entries)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"fsync_mod", "fsync_mode", 1}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
