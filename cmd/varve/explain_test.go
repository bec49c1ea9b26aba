package main

import (
	"strings"
	"testing"
	"time"
)

// explainedText returns the part of the text before the table of settings.
func explainedText(t *testing.T, args ...string) string {
	t.Helper()
	out, settings, ok := strings.Cut(mustRun(t, "", append([]string{"config", "explain"}, args...)...), "\n\n")
	if !ok || strings.Count(settings, "\n") != len(table) {
		t.Fatalf("%d lines of settings, want %d", strings.Count(settings, "\n"), len(table))
	}
	return out + "\n"
}

func TestExplainDefaults(t *testing.T) {
	want := `acked when   the device has it
worst loss   process killed: nothing
             power lost: nothing
             disk lost: everything
behind acks  hot: nothing: every ack is on the device
memory       66.5 MiB, and 16.1 MiB for each reader (read ahead, or a batch of max_batch_bytes)
             64 MiB: accepted and not yet written (pending_bytes)
             1.5 MiB: index of the active segment (segment_bytes, index_spacing_bytes)
             768 KiB: producers, 4096
             256 KiB: window of an open
disk         no bound: no retention: it grows until min_free_bytes are left, then appends answer ErrNoSpace
             256 MiB stay free
warning      there is one copy, on the local disk: if it is lost, so is everything
`
	if got := explainedText(t); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExplainAllTiers(t *testing.T) {
	want := `acked when   the page cache has it and Valkey replicas have confirmed it, 2 of them; if they do not within 50ms, it is acked all the same
worst loss   process killed: nothing
             power lost: a suffix of at most two intervals, 40ms; after a failed sync, a kill with memory pressure can take as much; then it is refilled from warm
             disk lost: nothing: refilled from warm and cold; and what was acked while the replicas did not answer
behind acks  hot: 40ms, 4 KiB at 100 KiB/s: two intervals of fsync_interval_ms
             warm: no bound: an ack does not wait longer than warm.wait_timeout_ms
             cold: 10m, 58.6 MiB at 100 KiB/s: cold.max_upload_age (10m; a segment takes longer to fill), and the time of the upload
memory       132.4 MiB, and 13.1 MiB for each reader (read ahead, or a batch of max_batch_bytes)
             2 MiB: accepted and not yet written (pending_bytes)
             384 KiB: index of the active segment (segment_bytes, index_spacing_bytes)
             768 KiB: producers, 4096
             256 KiB: window of an open
             65 MiB: an entry for Valkey, at an open a page of them (max_batch_bytes)
             64 MiB: parts of an upload (cold.part_bytes)
disk         8.4 GiB: retention keeps 24h, what is in one segment with the oldest of that, and what arrives in retention_check_interval; while the cold tier cannot be reached it grows on, until min_free_bytes are left
             1 B stay free
cold, a day  at 100 KiB/s: 144 objects of 58.6 MiB, 1441 PUT, 289 GET, 144 DELETE, no LIST
             a reader of all of it: 2881 GET
valkey       516 MiB in each server's memory: the active segment and 3 closed ones (warm.max_cached_closed_segments, segment_bytes); while the cold tier cannot be reached it grows on; an open reads all of it
`
	got := explainedText(t, "--write-rate", "100KiB", "--config", configured(t, allKeys))
	text, warned, _ := strings.Cut(got, "warning ")
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	for _, w := range []string{"allow_damaged is on", "accept_loss is on", "repair_checksum_tail is on", "wait_replicas is 2", "on_wait_timeout is ack"} {
		if !strings.Contains(warned, w) {
			t.Errorf("no warning that %s in\n%s", w, warned)
		}
	}
}

// TestCF2LossesAreSaid: what the tiers give back, in each combination.
func TestCF2LossesAreSaid(t *testing.T) {
	const warm, cold = "--warm-endpoints=one:6379", "--cold-url=s3://bucket"
	for _, c := range []struct {
		args  string
		disk  string
		power string
		tiers string
	}{
		{"", "everything", "nothing", "hot"},
		{"--fsync none", "everything", "what the system had not written yet", "hot"},
		{cold, "what is not in the cold tier: a segment (segment_bytes, full in 4m16s)", "nothing", "hot cold"},
		{cold + " --cold-max-upload-age 1m", "what is not in the cold tier: cold.max_upload_age (1m;", "nothing", "hot cold"},
		{cold + " --segment-age 2m --write-rate 1", "what is not in the cold tier: segment_age (2m;", "nothing", "hot cold"},
		{cold + " --segment-age=-1 --write-rate 1", "what is not in the cold tier: a segment (segment_bytes, full in 74565h24m16s)", "nothing", "hot cold"},
		{warm, "all but the active segment and the last 5 closed ones", "nothing", "hot warm"},
		{warm + " --fsync periodic", "all but the active", "500ms; after a failed sync, a kill with memory pressure can take as much; then it is refilled from warm", "hot warm"},
		{warm + " " + cold, "nothing: refilled from warm and cold", "nothing", "hot warm cold"},
	} {
		x := explainedJSON(t, strings.Fields(c.args)...)
		var tiers []string
		for _, r := range x.RPO {
			tiers = append(tiers, r.Tier)
		}
		if !strings.HasPrefix(x.Loss.DiskLost, c.disk) || !strings.Contains(x.Loss.PowerLoss, c.power) || strings.Join(tiers, " ") != c.tiers ||
			x.Loss.ProcessKill != "nothing" || (x.Requests != nil) != strings.Contains(c.args, cold) {
			t.Errorf("%q: %+v", c.args, x)
		}
	}
}

func TestExplainDisk(t *testing.T) {
	const gib = 1 << 30
	for args, want := range map[string]int64{
		"":                                       -1,
		"--retention-bytes 10GiB --write-rate 1": 10*gib + gib/4 + 60,
		"--retention-bytes 10GiB --local-retention-bytes 2GiB --write-rate 1":               2*gib + gib/4 + 60,
		"--retention-age 1h --segment-age 10m --write-rate 1024":                            1024 * (3600 + 600 + 60),
		"--retention-age 1h --retention-bytes 1TiB --write-rate 1048576":                    1048576 * (3600 + 256 + 60),
		"--retention-age 10000h --retention-bytes 1GiB --write-rate 1":                      36_000_000 + 86_400 + 60,
		"--retention-age 10000h --retention-bytes 1GiB --write-rate 1MiB":                   gib + gib/4 + 60*1<<20,
		"--retention-bytes 9223372036854775807":                                             1<<63 - 1,
		"--retention-bytes 1GiB --segment-bytes 4KiB --write-rate 1 --max-batch-bytes 8MiB": gib + 8<<20 + 60,
	} {
		if x := explainedJSON(t, strings.Fields(args)...); x.Disk.Bytes != want || x.Disk.KeepsFree != gib/4 {
			t.Errorf("%q: %+v, want %d", args, x.Disk, want)
		}
	}
}

// TestExplainRequests counts the requests of a day one by one, object by object.
func TestExplainRequests(t *testing.T) {
	for _, args := range []string{
		"", "--write-rate 10MiB", "--write-rate 1", "--write-rate 1000 --cold-max-upload-age 1m", "--cold-part-bytes 300MiB",
		"--write-rate 200KiB --cold-max-upload-age 7m",
	} {
		x := explainedJSON(t, strings.Fields("--cold-url s3://bucket "+args)...)
		s := nodeSettings{}
		for i := range table {
			if err := table[i].set(&s, strings.Trim(x.setting(table[i].name).Value, `"[]`)); err != nil {
				t.Fatal(err)
			}
		}
		object := min(int64(s.SegmentBytes), x.WriteRate*int64(time.Duration(s.SegmentAge).Seconds()))
		if s.ColdMaxUploadAge > 0 {
			object = min(object, x.WriteRate*int64(time.Duration(s.ColdMaxUploadAge).Seconds()))
		}
		want := requestCost{ObjectBytes: object, Puts: 1, Gets: 1, ReadGets: 1}
		put := func(bytes int64) {
			want.Puts += 2 // announced, entered
			if bytes > int64(s.ColdPartBytes) {
				want.Puts++ // begun; finishing it counts as the last
			}
			parts := int64(0)
			for at := int64(0); at < bytes; at += int64(s.ColdPartBytes) {
				parts++
			}
			want.Puts += parts
			if parts > 1 {
				want.Puts++
			}
		}
		var objects []int64
		for written := int64(0); written < x.WriteRate*86400; written += object {
			put(object)
			objects = append(objects, object)
		}
		for i, o := range objects {
			asks := []int64{128 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20}
			if i == 0 {
				asks[0] = 64 << 10
			}
			for at := int64(512); at < o; want.ReadGets++ {
				if len(asks) == 0 {
					asks = []int64{4 << 20}
				}
				at, asks = at+asks[0], asks[1:]
			}
			want.Objects++
		}
		if *x.Requests != want {
			t.Errorf("%q:\n got %+v\nwant %+v", args, *x.Requests, want)
		}
	}
	if x := explainedJSON(t, "--cold-url", "s3://bucket", "--retention-age", "24h"); x.Requests.Deletes != 338 || x.Requests.Puts != 1+338*36+2*338 {
		t.Errorf("%+v", x.Requests)
	}
}

// TestStrayVariables: a mistyped variable is refused by every command that has settings, as a mistyped key of a file is.
func TestStrayVariables(t *testing.T) {
	t.Setenv("VARVE_SOMETHING_ELSE", "1")
	t.Setenv("VARVE_PENDING_BYTES", "32MiB")
	explainedJSON(t)
	t.Setenv("VARVE_SEGMNT_BYTES", "1")
	dir := t.TempDir()
	for _, args := range [][]string{{"log", "append", "--dir", dir + "/d"}, {"log", "read", "--dir", dir}, {"config", "explain"}, {"serve", "--dir", dir + "/d"}} {
		fails(t, dir, exitUsage, args, "VARVE_SEGMNT_BYTES: expected a setting that there is (VARVE_SEGMENT_BYTES?)")
	}
}

func TestExplainRate(t *testing.T) {
	for _, rate := range []string{"0", "2TiB", "-1", "fast"} {
		fails(t, t.TempDir(), exitUsage, []string{"config", "explain", "--write-rate=" + rate}, "--write-rate")
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 256 << 20: "256 MiB", 1<<63 - 1: "8192 PiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
