package disk

import (
	"errors"

	"varve/core"
	"varve/core/segment"
)

func (s *Store) scan(r *core.Result, e *core.Scan) error {
	f, err := s.openScan(r, &e.File, e.LogID, e.SectorBytes)
	if err != nil {
		return err
	}
	f.sf.Lineage = e.Lineage
	var index File
	if e.File.Index {
		index = s.openIndex(&f.sf, &e.File)
	}
	err = s.hot.scanner.Scan(&f.sf, e.Whole, &e.Info)
	_ = f.file.Close()
	if index != nil {
		_ = index.Close()
	}
	if err != nil {
		return failed(r, core.StepRead, err)
	}
	return nil
}

// scanned is a file opened for the scanner.
type scanned struct {
	file File
	sf   segment.ScanFile
}

// openScan opens a segment file. Its size is taken now: List may have seen another.
func (s *Store) openScan(r *core.Result, e *core.FileEntry, log segment.LogID, sector int) (scanned, error) {
	f, err := s.fs.Open(s.segmentName(e.Base, e.ID), Read)
	if err != nil {
		return scanned{}, failed(r, core.StepOpen, err)
	}
	size, err := f.Size()
	if err != nil {
		_ = f.Close()
		return scanned{}, failed(r, core.StepRead, err)
	}
	return scanned{file: f, sf: segment.ScanFile{
		Source: f, Bytes: size, ID: e.ID, Base: e.Base, LogID: log, SectorBytes: sector,
	}}, nil
}

// openIndex opens the sidecar of a file. It is derived: without it the file is scanned.
func (s *Store) openIndex(sf *segment.ScanFile, e *core.FileEntry) File {
	f, err := s.fs.Open(s.indexName(e.Base, e.ID), Read)
	if err != nil {
		return nil
	}
	if sf.IndexBytes, err = f.Size(); err != nil {
		_ = f.Close()
		return nil
	}
	sf.Index = f
	return f
}

// errIndexEnd says that a sidecar was to cover more than the file holds.
var errIndexEnd = errors.New("disk: the batches of the file do not end where its index should")

func (s *Store) saveIndex(r *core.Result, e *core.SaveIndex) (done bool, err error) {
	name := s.indexName(e.File.Base, e.File.ID)
	if r.Stage > 0 {
		return s.finishTmp(r, name, r.Stage)
	}
	f, err := s.openScan(r, &e.File, e.LogID, segment.SectorBytesMin)
	if err != nil {
		return false, err
	}
	err = s.buildIndex(r, &f.sf, e)
	_ = f.file.Close()
	if err != nil {
		return false, err
	}
	s.hot.buf = s.hot.footer.AppendIndex(s.hot.buf[:0])
	return false, s.writeTmp(r, name, s.hot.buf)
}

// buildIndex gathers the footer of [base of the file, e.End) in hot.footer.
func (s *Store) buildIndex(r *core.Result, sf *segment.ScanFile, e *core.SaveIndex) error {
	scan, footer := &s.hot.scanner, &s.hot.footer
	if err := scan.Start(sf); err != nil {
		return failed(r, core.StepRead, err)
	}
	var b segment.Batch
	next := e.File.Base
	for next < e.End {
		more, err := scan.Next(&b)
		if err != nil {
			return failed(r, core.StepRead, err)
		}
		if !more || b.Identity.Base != next || b.First != (next == e.File.Base) {
			return failed(r, core.StepCheck, errIndexEnd)
		}
		if b.First {
			footer.Reset(&scan.Info().Header, scan.HeaderCRC(), e.IndexSpacingBytes)
		}
		footer.Add(b.Pos, &b.Identity, b.Placement.Commit, b.Chain)
		next = b.Identity.End()
	}
	if next != e.End || e.End == e.File.Base {
		return failed(r, core.StepCheck, errIndexEnd)
	}
	return nil
}
