package main

import (
	"bufio"
	"fmt"
	"math"
	"strings"
	"time"

	"varve"
	"varve/core/segment"
	"varve/tiers/cold"
)

// diskBound is what the log takes of the local disk. -1 is no bound.
type diskBound struct {
	Bytes     int64  `json:"bytes"`
	KeepsFree int64  `json:"keeps_free_bytes"`
	Why       string `json:"why"`
}

// requestCost is how many requests the cold tier costs a day, at the write rate.
type requestCost struct {
	ObjectBytes int64 `json:"object_bytes"`
	Objects     int64 `json:"objects"`
	Puts        int64 `json:"puts"`      // parts, starts and ends of uploads, manifest; one open
	Gets        int64 `json:"gets"`      // of the writer: the manifest once an open, and a look at each object for which a file leaves the disk
	Deletes     int64 `json:"deletes"`   // by retention and merging
	ReadGets    int64 `json:"read_gets"` // of log read, which reads the manifest and all of it once
	Lists       int64 `json:"lists"`     // none: what lists is cold scrub, rebuild-manifest, and an open that finds no manifest, as that of a new log
}

// warmCost is what the log takes of each Valkey server's memory.
type warmCost struct {
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"`
}

const (
	day           = 24 * time.Hour
	readerBytes   = 128 << 10 // read ahead
	windowBytes   = 256 << 10 // of the open
	producers     = 4096
	producerSize  = 2 * 96 // in the core and in the footer of the active segment
	indexEntry    = 24
	warmPageBytes = 64 << 20 // entries of a page, of a MiB each
	batchMin      = 112 + 1
)

// memory lists what the settings bound. It is what a log takes, not what a Go program needs besides.
func memory(s *settings) []share {
	entries := segmentBytes(s) / max(int64(s.IndexSpacingBytes), batchMin)
	all := []share{
		{"accepted and not yet written (pending_bytes)", int64(s.PendingBytes)},
		{"index of the active segment (segment_bytes, index_spacing_bytes)", entries * indexEntry},
		{"producers, 4096", producers * producerSize},
		{"window of an open", windowBytes},
	}
	if s.warm() {
		all = append(all, share{"an entry for Valkey, at an open a page of them (max_batch_bytes)", warmPageBytes + int64(s.MaxBatchBytes)})
	}
	reader := readerBytes + int64(s.MaxBatchBytes)
	if s.cold() {
		o := cold.DefaultOptions() // parts on their way, and one that is filled; ranges behind, at and ahead of a reader
		all = append(all, share{"parts of an upload (cold.part_bytes)", int64(o.PartsAtOnce+1) * int64(s.ColdPartBytes)})
		reader += 3 * int64(o.ReadAheadBytes)
	}
	return append(all, share{"each reader (read ahead, or a batch of max_batch_bytes)", reader})
}

// onDisk says how far the local files grow: by whichever rule of retention comes first.
func onDisk(s *settings, rate int64) diskBound {
	bytes := tighter(int64(s.LocalRetentionBytes), int64(s.RetentionBytes))
	age := time.Duration(tighter(int64(s.LocalRetentionAge), int64(s.RetentionAge)))
	d := diskBound{Bytes: math.MaxInt64, KeepsFree: int64(s.MinFreeBytes)}
	late := times(rate, s.RetentionCheckInterval)
	segment := max(segmentBytes(s), int64(s.MaxBatchBytes))
	if bytes != varve.Unlimited {
		d.Bytes = sum(bytes, segment, late)
		d.Why = fmt.Sprintf("retention keeps %s and up to a segment more, and what arrives in retention_check_interval", sizeText(bytes))
	}
	if age != varve.Unlimited {
		filling := timeFor(segment, rate)
		if s.SegmentAge != varve.Unlimited {
			filling = min(filling, time.Duration(s.SegmentAge))
		}
		if b := sum(times(rate, age), times(rate, filling), late); b < d.Bytes {
			d.Bytes = b
			d.Why = fmt.Sprintf("retention keeps %s, what is in one segment with the oldest of that, and what arrives in retention_check_interval", durationText(age))
		}
	}
	switch {
	case d.Why == "":
		d.Bytes, d.Why = -1, "no retention: it grows until min_free_bytes are left, then appends answer ErrNoSpace"
	case s.cold():
		d.Why += "; while the cold tier cannot be reached it grows on, until min_free_bytes are left"
	}
	return d
}

// warmMemory says how far the stream grows.
func warmMemory(s *settings) *warmCost {
	if !s.warm() {
		return nil
	}
	segment := sum(segmentBytes(s), int64(s.MaxBatchBytes))
	c := &warmCost{Why: fmt.Sprintf("the active segment and %d closed ones (warm.max_cached_closed_segments, segment_bytes)", s.WarmMaxCachedClosedSegments)}
	for range s.WarmMaxCachedClosedSegments + 1 {
		if c.Bytes = sum(c.Bytes, segment); c.Bytes > 1<<50 {
			break
		}
	}
	if most := sum(int64(s.WarmMaxBytes), segment); s.WarmMaxBytes != varve.Unlimited && most < c.Bytes {
		c.Bytes, c.Why = most, "warm.max_bytes, and up to a segment more"
	}
	if s.cold() {
		c.Why += "; while the cold tier cannot be reached it grows on"
	}
	c.Why += "; an open reads all of it"
	return c
}

func tighter(a, b int64) int64 {
	if a == varve.Unlimited || b != varve.Unlimited && b < a {
		return b
	}
	return a
}

// sum adds and stops at the greatest number.
func sum(all ...int64) (total int64) {
	for _, v := range all {
		if v > math.MaxInt64-total {
			return math.MaxInt64
		}
		total += v
	}
	return total
}

// requests counts the requests of a day. An upload is announced in the manifest, written, and entered.
func requests(s *settings, rate int64) *requestCost {
	if !s.cold() {
		return nil
	}
	object := max(1, min(segmentBytes(s), coldLag(s, rate).Bytes))
	return requestsOf(s, object, divide(times(rate, day), object))
}

// requestsOf counts the requests for so many objects.
func requestsOf(s *settings, object, objects int64) *requestCost {
	part := int64(s.ColdPartBytes)
	c := &requestCost{ObjectBytes: object, Objects: objects}
	c.Puts = 1 + c.Objects*(uploads(object, part)+2) // an open claims the manifest
	c.Gets = 1
	if s.LocalRetentionBytes != varve.Unlimited || s.LocalRetentionAge != varve.Unlimited {
		c.Gets += c.Objects * lookRequests(object)
	}
	c.ReadGets = 1 + readAll(c.Objects, object)
	if s.RetentionBytes != varve.Unlimited || s.RetentionAge != varve.Unlimited {
		c.Deletes += c.Objects
		c.Puts += 2 * min(c.Objects, int64(day/s.RetentionCheckInterval)+1) // Start, then what is gone
	}
	return c
}

// uploads counts the requests of one object.
func uploads(object, part int64) int64 {
	if object <= part {
		return 1
	}
	return divide(object, part) + 2
}

// lookRequests counts the requests of the look at an object before its file leaves the disk: at its head and at its footer.
func lookRequests(object int64) int64 {
	if object <= cold.ReadFirst {
		return 1
	}
	return 2
}

// readAll counts the requests of a reader that reads objects from first byte to last. It begins with
// little, and asks for what a reader wants at once where it goes on to the next object. Batches are small.
func readAll(objects, each int64) int64 {
	if objects == 0 {
		return 0
	}
	return reads(each, cold.ReadFirst) + (objects-1)*reads(each, readerBytes)
}

// reads counts the requests for one object, the first of which asks for so much. Each but the second
// asks for twice as much as the one before.
func reads(object, ask int64) (n int64) {
	next, most := int64(2*cold.ReadFirst), int64(cold.DefaultOptions().ReadAheadBytes)
	for at := int64(segment.SectorBytesMin); at < object; n++ {
		if ask == most {
			return n + divide(object-at, most)
		}
		at += ask
		ask, next = next, min(2*next, most)
	}
	return n
}

func divide(a, b int64) int64 { return a/b + min(a%b, 1) }

// print prints for people.
func (x *explanation) print(w *bufio.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-12s "+format+"\n", append([]any{name}, args...)...)
	}
	row("acked when", "%s", x.Ack)
	row("worst loss", "process killed: %s", x.Loss.ProcessKill)
	row("", "power lost: %s", x.Loss.PowerLoss)
	row("", "disk lost: %s", x.Loss.DiskLost)
	for i, r := range x.RPO {
		name := ""
		if i == 0 {
			name = "behind acks"
		}
		switch {
		case r.Seconds < 0:
			row(name, "%s: no bound: %s", r.Tier, r.Why)
		case r.Seconds == 0:
			row(name, "%s: nothing: %s", r.Tier, r.Why)
		default:
			row(name, "%s: %s, %s at %s/s: %s", r.Tier, durationText(round(time.Duration(r.Seconds*1e9))), sizeText(r.Bytes), sizeText(x.WriteRate), r.Why)
		}
	}
	total, last := int64(0), len(x.Memory)-1
	for i, m := range x.Memory {
		if i < last {
			total += m.Bytes
		}
	}
	row("memory", "%s, and %s for %s", sizeText(total), sizeText(x.Memory[last].Bytes), x.Memory[last].What)
	for _, m := range x.Memory[:last] {
		row("", "%s: %s", sizeText(m.Bytes), m.What)
	}
	if x.Disk.Bytes < 0 {
		row("disk", "no bound: %s", x.Disk.Why)
	} else {
		row("disk", "%s: %s", sizeText(x.Disk.Bytes), x.Disk.Why)
	}
	row("", "%s stay free", sizeText(x.Disk.KeepsFree))
	if c := x.Requests; c != nil {
		row("cold, a day", "at %s/s: %d objects of %s, %d PUT, %d GET, %d DELETE, no LIST", sizeText(x.WriteRate), c.Objects, sizeText(c.ObjectBytes), c.Puts, c.Gets, c.Deletes)
		row("", "a reader of all of it: %d GET", c.ReadGets)
	}
	if v := x.Valkey; v != nil {
		row("valkey", "%s in each server's memory: %s", sizeText(v.Bytes), v.Why)
	}
	for _, text := range x.Warnings {
		row("warning", "%s", text)
	}
	fmt.Fprintln(w)
	for _, k := range x.Settings {
		fmt.Fprintf(w, "%-33s %-14s %s\n", k.Key, k.Value, k.Source)
	}
}

// sizeText returns a number of bytes as people read it.
func sizeText(n int64) string {
	unit, units := "B", []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	v := float64(n)
	for v >= 1024 && len(units) > 0 {
		v, unit, units = v/1024, units[0], units[1:]
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
}

// segmentBytes is the size at which a segment is sealed: the warm tier's bound may be less.
func segmentBytes(s *settings) int64 {
	bytes := int64(s.SegmentBytes)
	if s.warm() && s.WarmMaxBytes != varve.Unlimited {
		bytes = min(bytes, max(int64(s.WarmMaxBytes), bytes/16))
	}
	return bytes
}
