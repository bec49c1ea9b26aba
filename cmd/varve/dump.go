package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"varve"
	"varve/broker/kafka/batch"
	"varve/core/segment"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

type dumpCommand struct {
	Dir     string `required:"" placeholder:"D" help:"Directory of the log."`
	Segment string `placeholder:"NAME" help:"Print the batches of this segment file."`

	configFlag // checked; the files of the directory are the same with any
}

// Validate checks the name.
func (c *dumpCommand) Validate() error {
	if _, _, kind, ok := segment.ParseName(c.Segment); c.Segment != "" && (!ok || kind != segment.NameSegment) {
		return fmt.Errorf("--segment %q: want the name of a segment file in the directory", c.Segment)
	}
	return nil
}

// Run prints what the files hold, good or not.
func (c *dumpCommand) Run(ctx context.Context, s *streams) error {
	entries, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !slices.ContainsFunc(entries, ours) {
		return fmt.Errorf("%s: %w", c.Dir, &varve.RefusedError{Why: "it holds no log", Next: "name the directory of a log"})
	}
	id, known := dumpSupers(s.out, c.Dir)
	if c.Segment != "" {
		return dumpSegment(ctx, s.out, c.Dir, c.Segment, id, known, true)
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var first error
	for _, e := range entries {
		if _, _, kind, ok := segment.ParseName(e.Name()); !ok || kind != segment.NameSegment {
			continue
		}
		err := dumpSegment(ctx, s.out, c.Dir, e.Name(), id, known, false)
		if ctx.Err() != nil {
			return err
		}
		if err != nil { // of this file: the others can be looked at all the same
			fmt.Fprintf(s.out, "%s  %v\n", e.Name(), err)
		}
		if first == nil && !errors.Is(err, disk.ErrNotExist) { // gone since: a writer trimmed it
			first = err
		}
	}
	return first
}

// ours reports whether a directory entry has the name of a file that makes a log.
func ours(e os.DirEntry) bool {
	_, _, _, ok := segment.ParseName(e.Name())
	return ok || slices.Contains(superNames[:], e.Name())
}

var superNames = [...]string{"super.0", "super.1"}

// dumpSupers prints both superblock slots and returns the log id of a valid one.
func dumpSupers(w *bufio.Writer, dir string) (id segment.LogID, known bool) {
	for _, name := range superNames {
		b, err := readAtMost(dir, name, segment.SuperBytesMax+1)
		if err != nil {
			fmt.Fprintf(w, "%s  %v\n", name, err)
			continue
		}
		var s segment.Superblock
		if err := segment.ReadSuper(b, &s); err != nil {
			fmt.Fprintf(w, "%s  does not verify: %v\n", name, err)
			continue
		}
		fmt.Fprintf(w, "%s  sequence %d log %x epoch %d fsync %v sector %d clean %t complete %t start %d hot_start %d frontier %d committed %d (epoch %d)\n",
			name, s.Sequence, s.LogID, s.Epoch, s.Sync, s.SectorBytes, s.Clean, s.Complete, s.Start, s.HotStart, s.Frontier, s.Committed, s.CommittedEpoch)
		for _, l := range s.Lineage {
			fmt.Fprintf(w, "  epoch %d owns offsets from %d on\n", l.Epoch, l.First)
		}
		id, known = s.LogID, true
	}
	return id, known
}

func readAtMost(dir, name string, limit int64) ([]byte, error) {
	f, err := osfs.New(dir).Open(name, disk.Read)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	return io.ReadAll(io.NewSectionReader(f, 0, limit))
}

// dumpSegment prints the header of a segment file, its batches if wanted, and what a scan finds.
func dumpSegment(ctx context.Context, w *bufio.Writer, dir, name string, id segment.LogID, known, batches bool) error {
	base, segID, _, _ := segment.ParseName(name)
	f, err := osfs.New(dir).Open(name, disk.Read)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	size, err := f.Size()
	if err != nil {
		return err
	}
	head := make([]byte, segment.HeaderBytes)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	h, _, verdict, version := segment.ReadHeader(head[:n])
	fmt.Fprintf(w, "%s  %d bytes, header %s", name, size, headerText(verdict, version))
	if verdict == segment.HeaderGood {
		fmt.Fprintf(w, ": log %s id %016x kind %s epoch %d base %d end %d fsync %v sector %d created %s", hex.EncodeToString(h.LogID[:]), uint64(h.ID),
			kindText(h.Kind), h.Epoch, h.Base, h.End, h.Sync, h.SectorBytes, timeText(h.Created))
		if !known {
			id = h.LogID
		}
	}
	fmt.Fprintln(w)
	return dumpBatches(ctx, w, &segment.ScanFile{Source: f, Bytes: size, ID: segID, Base: base, LogID: id, SectorBytes: 512}, batches)
}

func dumpBatches(ctx context.Context, w *bufio.Writer, file *segment.ScanFile, batches bool) error {
	var scan segment.Scanner
	if err := scan.Start(file); err != nil {
		return err
	}
	var b segment.Batch
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := scan.Next(&b)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if !batches {
			continue
		}
		i, p := &b.Identity, &b.Placement
		if b.First {
			fmt.Fprintf(w, "  run at byte %d\n", b.Pos)
		}
		fmt.Fprintf(w, "  byte %d  [%d, %d)  epoch %d commit %d frontier %d kind %d payload %d bytes crc %08x appended %s", b.Pos, i.Base, i.End(),
			i.Epoch, p.Commit, p.Frontier, i.Kind, i.PayloadBytes, i.PayloadCRC, timeText(i.AppendTime))
		if i.ProducerID >= 0 {
			fmt.Fprintf(w, " producer %d epoch %d sequence %d", i.ProducerID, i.ProducerEpoch, i.Sequence)
		}
		fmt.Fprintln(w)
		if i.Kind == segment.KindKafka {
			fmt.Fprintf(w, "    %s\n", kafkaText(file, b.Pos, i.PayloadBytes))
		}
	}
	info := scan.Info()
	if info.Head != segment.BreakNone {
		fmt.Fprintf(w, "  no batch where the first one belongs: %s at byte %d\n", breakText(file, info.Head, info.HeadPos), info.HeadPos)
	}
	for _, r := range info.Runs {
		fmt.Fprintf(w, "  batches %d, offsets [%d, %d), bytes [%d, %d), ended by %s at byte %d\n", r.Batches, r.First, r.End, r.Pos, r.EndPos,
			breakText(file, r.Break, r.BreakPos), r.BreakPos)
	}
	fmt.Fprintf(w, "  evidence up to %d, footer %s\n", info.Evidence, footerText(info))
	return nil
}

// kafkaText prints the header of the RecordBatch that is the payload of the batch at a position.
func kafkaText(f *segment.ScanFile, pos int64, bytes uint32) string {
	head := make([]byte, min(batch.HeaderBytes, bytes))
	if _, err := f.Source.ReadAt(head, pos+segment.BatchHeaderBytes); err != nil {
		return fmt.Sprintf("RecordBatch: %v", err)
	}
	h, err := batch.Stored(head)
	if err != nil {
		return fmt.Sprintf("no RecordBatch: %v", err)
	}
	millis := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
	text := fmt.Sprintf("RecordBatch attributes %#x compression %s records %d base time %s max time %s", uint16(h.Attributes), h.Attributes.Codec(), h.Records,
		millis(h.BaseTime), millis(h.MaxTime))
	if h.ProducerID >= 0 {
		text += fmt.Sprintf(" producer %d epoch %d sequence %d", h.ProducerID, h.ProducerEpoch, h.Sequence)
	}
	return text
}

func footerText(info *segment.FileInfo) string {
	if !info.Sealed {
		return "none"
	}
	f := &info.Footer
	return fmt.Sprintf("verifies: offsets [%d, %d), %d batches, data ends at byte %d, times %s to %s", f.Base, f.End, f.Batches, f.DataEnd,
		timeText(f.MinTime), timeText(f.MaxTime))
}

func headerText(v segment.HeaderVerdict, version uint16) string {
	switch v {
	case segment.HeaderGood:
		return "verifies"
	case segment.HeaderNewer:
		return fmt.Sprintf("of newer format version %d", version)
	}
	return "does not verify"
}

func kindText(k segment.Kind) string {
	switch k {
	case segment.Replacement:
		return "replacement"
	case segment.Lost:
		return "lost"
	}
	return "created"
}

func breakText(f *segment.ScanFile, b segment.Break, pos int64) string {
	switch b {
	case segment.BreakTorn:
		return "a torn batch"
	case segment.BreakPayload:
		return "a payload with a wrong checksum" + payloadText(f, pos)
	}
	return "the end of the data"
}

// payloadText says which checksum the payload of the batch at a position should have and has.
func payloadText(f *segment.ScanFile, pos int64) string {
	src := io.NewSectionReader(f.Source, pos, f.Bytes-pos)
	head := make([]byte, segment.BatchHeaderBytes)
	if _, err := io.ReadFull(src, head); err != nil {
		return ""
	}
	_, i, _, ok := segment.ReadBatchHeader(head, segment.PlacementSeed(f.LogID, f.ID), segment.IdentitySeed(f.LogID))
	sum := crc32.New(castagnoli)
	if n, err := io.CopyN(sum, src, int64(i.PayloadBytes)); !ok || err != nil || n != int64(i.PayloadBytes) {
		return ""
	}
	return fmt.Sprintf(" (expected %08x, found %08x)", i.PayloadCRC, sum.Sum32())
}

func timeText(t segment.Time) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }
