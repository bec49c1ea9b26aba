package varve_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"varve"
	"varve/tiers/tiertest"
	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
)

// BenchmarkWarm: 64 writers that wait for their own ack, records of 128 B, on_commit, in rounds: without a
// warm tier, and with a Valkey primary on loopback of which one replica has to confirm. raw-waits/s is what
// those servers take of one connection: an entry of one marker and its WAIT, again and again. All rates are
// those of the median round.
func BenchmarkWarm(b *testing.B) {
	for _, persist := range []string{"no", "always"} {
		b.Run("appendonly="+persist, func(b *testing.B) { benchWarm(b, persist) })
	}
}

func benchWarm(b *testing.B, persist string) {
	const rounds, writers = 20, 64
	settings := []string{"save "}
	if persist == "always" {
		settings = append(settings, "appendonly yes", "appendfsync always")
	}
	primary := tiertest.StartValkey(b, settings...)
	tiertest.StartValkey(b, append(settings, "replicaof 127.0.0.1 "+primary.Port)...)
	tiertest.Eventually(b, "a replica that follows", func() bool { return strings.Contains(primary.Do("INFO", "replication"), "state=online") })
	d, err := client.New(client.Options{Addresses: []string{primary.Addr}})
	if err != nil {
		b.Fatal(err)
	}
	raw, err := valkey.New("raw", d, valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 1 << 20, Timeout: int64(time.Minute)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	hot := benchLog(b, varve.Options{})
	warm := benchLog(b, varve.Options{Create: true, Warm: varve.WarmOptions{Dialer: d, Name: "bench", Wait: 10 * time.Second}})

	each, generation := max(b.N/rounds, writers), uint64(0)
	waits := max(each/writers, 1)
	var took [3][rounds]time.Duration
	for round := range rounds {
		for i, l := range []*varve.Log{hot, warm} {
			began := time.Now()
			appendFrom(b, l, writers, each)
			took[i][round] = time.Since(began)
		}
		began := time.Now()
		for range waits {
			generation++
			f := valkey.Fence{Generation: generation, Marker: tiertest.WarmMarker(generation), Ack: valkey.Ack{Replicas: 1, Wait: int64(time.Minute)}}
			if err := raw.Fence(&f); err != nil || f.Confirmed < 1 {
				b.Fatal(err, f.Confirmed)
			}
		}
		took[2][round] = time.Since(began)
	}
	rate := func(what, n int) float64 {
		slices.Sort(took[what][:])
		return float64(n) / took[what][rounds/2].Seconds()
	}
	h, w := hot.Stats(), warm.Stats()
	b.ReportMetric(rate(0, each), "hot-records/s")
	b.ReportMetric(rate(1, each), "warm-records/s")
	b.ReportMetric(rate(1, each)/rate(0, each), "warm/hot")
	b.ReportMetric(float64(h.CommitRecords)/float64(h.Commits), "hot-records/commit")
	b.ReportMetric(float64(w.CommitRecords)/float64(w.Commits), "warm-records/commit")
	b.ReportMetric(rate(2, waits), "raw-waits/s")
}
