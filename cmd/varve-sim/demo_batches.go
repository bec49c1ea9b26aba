//go:build !mutant

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"varve"
	"varve/core/segment"
)

// batchPlace is where a batch lies.
type batchPlace struct {
	file     string
	pos, end int64 // bytes
	base     int64 // offset of its first record
	records  int64
}

// batchesOf lists the batches of a segment file.
func batchesOf(file string, log segment.LogID) ([]batchPlace, error) {
	base, id, kind, ok := segment.ParseName(filepath.Base(file))
	if !ok || kind != segment.NameSegment {
		return nil, fmt.Errorf("%s: no name of a segment", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading only
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return scanBatches(file, &segment.ScanFile{Source: f, Bytes: st.Size(), ID: id, Base: base, LogID: log, SectorBytes: 512})
}

// scanBatches lists the batches of a file or an object of that name.
func scanBatches(name string, f *segment.ScanFile) ([]batchPlace, error) {
	var scan segment.Scanner
	if err := scan.Start(f); err != nil {
		return nil, err
	}
	var all []batchPlace
	var b segment.Batch
	for {
		more, err := scan.Next(&b)
		if err != nil || !more {
			return all, err
		}
		all = append(all, batchPlace{name, b.Pos, b.Pos + int64(len(b.Raw)), b.Identity.Base, int64(b.Identity.Records)})
	}
}

// segmentsIn lists the segment files of a directory, in the order of their offsets.
func segmentsIn(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	slices.Sort(files)
	return files, err
}

// lastBatch returns the batch at the end of a log.
func lastBatch(x *varve.Inspection, dir string) (batchPlace, error) {
	files, err := segmentsIn(dir)
	if err != nil {
		return batchPlace{}, err
	}
	for _, file := range slices.Backward(files) {
		batches, err := batchesOf(file, x.View.LogID)
		if err != nil {
			return batchPlace{}, err
		}
		if n := len(batches); n > 0 {
			if last := batches[n-1]; last.base+last.records == x.End {
				return last, nil
			}
		}
	}
	return batchPlace{}, fmt.Errorf("no file ends with the record before offset %d", x.End)
}
