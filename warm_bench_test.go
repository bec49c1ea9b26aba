package varve_test

import (
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
// those servers take of one connection: an entry of one marker and its WAIT, again and again.
func BenchmarkWarm(b *testing.B) {
	for _, persist := range []string{"no", "always"} {
		b.Run("appendonly="+persist, func(b *testing.B) { benchWarm(b, persist) })
	}
}

func benchWarm(b *testing.B, persist string) {
	const rounds, writers = 10, 64
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

	each, waits := max(b.N/rounds, writers), 0
	var took [3]time.Duration
	for range rounds {
		for i, l := range []*varve.Log{hot, warm} {
			began := time.Now()
			appendFrom(b, l, writers, each)
			took[i] += time.Since(began)
		}
		began := time.Now()
		for range max(each/writers, 1) {
			waits++
			f := valkey.Fence{Generation: uint64(waits), Marker: tiertest.WarmMarker(uint64(waits)), Ack: valkey.Ack{Replicas: 1, Wait: int64(time.Minute)}}
			if err := raw.Fence(&f); err != nil || f.Confirmed < 1 {
				b.Fatal(err, f.Confirmed)
			}
		}
		took[2] += time.Since(began)
	}
	total, s := float64(rounds*each), warm.Stats()
	b.ReportMetric(total/took[0].Seconds(), "hot-records/s")
	b.ReportMetric(total/took[1].Seconds(), "warm-records/s")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "warm/hot")
	b.ReportMetric(float64(s.CommitRecords)/float64(s.Commits), "warm-records/commit")
	b.ReportMetric(float64(waits)/took[2].Seconds(), "raw-waits/s")
}
