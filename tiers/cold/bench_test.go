package cold_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"varve"
	"varve/tiers"
	"varve/tiers/cold"
	"varve/tiers/dirbucket"
	"varve/tiers/s3"
	"varve/tiers/tiertest"
)

// buckets are what the benchmarks run over: a directory, and a real server on loopback.
var buckets = []struct {
	name string
	open func(b *testing.B) tiers.Bucket
}{
	{"dir", func(b *testing.B) tiers.Bucket {
		x, err := dirbucket.Open(b.TempDir(), dirbucket.Options{Create: true})
		if err != nil {
			b.Fatal(err)
		}
		return x
	}},
	{"s3", func(b *testing.B) tiers.Bucket {
		server := tiertest.StartS3(b)
		x, err := s3.Open(b.Context(), s3.Options{
			Bucket: server.Bucket, Endpoint: server.Endpoint, PathStyle: true,
			AccessKey: server.AccessKey, SecretKey: server.SecretKey, Region: "us-east-1",
		})
		if err != nil {
			b.Fatal(err)
		}
		return x
	}},
}

// gated is a bucket that lets no object be written before it is opened.
type gated struct {
	tiers.Bucket
	open chan struct{}
}

func (g *gated) wait(key string) {
	if strings.Contains(key, "segments/") {
		<-g.open
	}
}

func (g *gated) Put(ctx context.Context, key string, p []byte, c tiers.Condition) (tiers.Object, error) {
	g.wait(key)
	return g.Bucket.Put(ctx, key, p, c)
}

func (g *gated) Begin(ctx context.Context, key string) (string, error) {
	g.wait(key)
	return g.Bucket.Begin(ctx, key)
}

const benchBytes = 256 << 20

// coldLog is a log of benchBytes in 1 KiB records, all in the bucket once it was offloaded.
func coldLog(b *testing.B, bucket tiers.Bucket) *varve.Log {
	b.Helper()
	l, err := varve.Open(b.Context(), filepath.Join(b.TempDir(), "log"), varve.Options{
		Fsync: varve.None, SegmentBytes: 64 << 20, MinFreeBytes: -1, Cold: bucket, ColdPrefix: "log/", Create: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close(context.Background()) })
	recs := make([]varve.Record, 100)
	for i := range recs {
		recs[i].Value = make([]byte, 1024)
	}
	for range benchBytes / 1024 / 100 {
		if _, err := l.Append(b.Context(), recs...); err != nil {
			b.Fatal(err)
		}
	}
	return l
}

// BenchmarkExport: 256 MiB in four segments, from files to objects.
func BenchmarkExport(b *testing.B) {
	for _, bucket := range buckets {
		b.Run(bucket.name, func(b *testing.B) {
			b.SetBytes(benchBytes)
			for range b.N {
				b.StopTimer()
				g := &gated{bucket.open(b), make(chan struct{})}
				l := coldLog(b, g)
				b.StartTimer()
				close(g.open)
				if err := l.Offload(b.Context(), l.Committed()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				_ = l.Close(b.Context())
				b.StartTimer()
			}
		})
	}
}

// BenchmarkColdRead: a sequential verified read of what is in objects alone.
func BenchmarkColdRead(b *testing.B) {
	for _, bucket := range buckets {
		b.Run(bucket.name, func(b *testing.B) {
			l := coldLog(b, bucket.open(b))
			if err := l.Offload(b.Context(), l.Committed()); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(benchBytes)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				r := l.NewReader(varve.Position{}, varve.ReadOptions{})
				for n := int64(0); n < l.Committed(); {
					v, ok, err := r.Poll()
					if !ok || err != nil {
						b.Fatal(ok, err)
					}
					n += int64(v.Records)
				}
				_ = r.Close()
			}
		})
	}
}

// BenchmarkRawParts is what the bucket takes in parts, at best: the bound of BenchmarkExport.
func BenchmarkRawParts(b *testing.B) {
	o := cold.DefaultOptions()
	for _, bucket := range buckets {
		b.Run(bucket.name, func(b *testing.B) {
			x := bucket.open(b)
			body := make([]byte, o.PartBytes)
			b.SetBytes(benchBytes)
			for i := range b.N {
				key := "raw/" + strconv.Itoa(i)
				id, err := x.Begin(b.Context(), key)
				if err != nil {
					b.Fatal(err)
				}
				parts := make([]tiers.Part, benchBytes/o.PartBytes)
				var group sync.WaitGroup
				for w := range o.PartsAtOnce {
					group.Go(func() {
						for n := w; n < len(parts); n += o.PartsAtOnce {
							if p, err := x.PutPart(b.Context(), key, id, n+1, body); err != nil {
								b.Error(err)
							} else {
								parts[n] = p
							}
						}
					})
				}
				group.Wait()
				if _, err := x.Finish(b.Context(), key, id, parts, tiers.Condition{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
