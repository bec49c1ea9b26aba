package cold

import (
	"hash/crc32"

	"varve/core"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/disk"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// upload is an object in the making: part by part, never whole in memory.
type upload struct {
	file    disk.File // the source
	scan    segment.Scanner
	rewrite segment.Rewriter
	key     string
	id      string // of the upload in parts; "": none
	parts   []tiers.Part
	buf     []byte // what is not sent yet
	size    int64
	crc     uint32
	ended   bool // the footer is in buf
	footer  int64

	flying int       // parts on their way
	sent   chan sent // their ends
	spare  [][]byte  // memory of parts that have arrived
}

// sent is the end of a part that was on its way.
type sent struct {
	part tiers.Part
	body []byte
	err  error
}

func (u *upload) forget() {
	if u.spare = nil; cap(u.buf) > bufferKept {
		u.buf = nil // an upload is rare, and a process may have many logs
	}
	u.file = nil
	u.id, u.parts, u.buf = "", u.parts[:0], u.buf[:0]
}

func (s *Store) upload(r *core.Result, e *core.Upload) (done bool, err error) {
	u := &s.up
	if r.Stage == 0 {
		err = s.beginUpload(r, e)
	}
	if err == nil && !u.ended && len(u.buf) < s.options.PartBytes {
		err = s.fill(r, e)
	}
	if err == nil {
		done, err = s.send(r, e)
	}
	if !done && err == nil {
		return false, nil
	}
	if err != nil && u.id != "" {
		_ = u.await(0) // an aborted upload takes no more parts
		ctx, cancel := s.call()
		_ = s.bucket.Abort(ctx, u.key, u.id) // the scrub finds what stays
		cancel()
	}
	if u.file != nil {
		_ = u.file.Close() // it was only read
	}
	u.forget()
	return done, err
}

func (s *Store) beginUpload(r *core.Result, e *core.Upload) error {
	u := &s.up
	u.forget()
	file, size, err := s.files.OpenSegment(&e.Source)
	if err != nil {
		return failed(r, core.StepOpen, err)
	}
	u.file = file
	o := e.Object()
	u.key, u.size, u.crc, u.ended, u.footer = s.objectKey(&o), 0, 0, false, 0
	err = u.scan.Start(&segment.ScanFile{
		Source: file, Bytes: size, ID: e.Source.ID, Base: e.Source.Base, LogID: e.Header.LogID,
		SectorBytes: int(e.SourceSectorBytes),
	})
	if err != nil {
		return failed(r, core.StepRead, err)
	}
	e.MinTime, e.MaxTime, e.AppendTime = 0, 0, 0
	if n := int(min(size+size/16, s.room())); cap(u.buf) < n {
		u.buf = make([]byte, 0, n)
	}
	u.buf = u.rewrite.Begin(u.buf[:0], &e.Header, e.Header.Base, e.IndexSpacingBytes)
	return nil
}

// room is what gathers before a part is sent, in most cases.
func (s *Store) room() int64 { return int64(s.options.PartBytes) + int64(s.options.PartBytes)/8 }

// fill gathers at least a part, or the end of the object. Every batch is verified on its way: what is
// rotten never becomes an object.
func (s *Store) fill(r *core.Result, e *core.Upload) error {
	u := &s.up
	w := &u.rewrite
	var b segment.Batch
	for w.End() < e.Header.End && len(u.buf) < s.options.PartBytes {
		more, err := u.scan.Next(&b)
		if err != nil {
			return failed(r, core.StepRead, err)
		}
		i := &b.Identity
		if more && i.End() <= e.Header.Base {
			continue
		}
		if !more || i.Base != w.End() || i.End() > e.Header.End || i.Epoch != e.SourceEpoch {
			return failed(r, core.StepCheck, errSource)
		}
		if i.Base == e.Header.Base {
			e.MinTime, e.MaxTime = i.MaxTime, i.MaxTime
		}
		e.MinTime, e.MaxTime = min(e.MinTime, i.MaxTime), max(e.MaxTime, i.MaxTime)
		e.AppendTime = max(e.AppendTime, i.AppendTime)
		u.buf = w.Add(u.buf, &b)
	}
	if w.End() == e.Header.End {
		footer := w.FooterPos()
		u.buf, e.Bytes = w.Finish(u.buf)
		u.ended, u.footer = true, e.Bytes-footer
	}
	return nil
}

// send puts what was gathered into the bucket: whole, or as a part.
func (s *Store) send(r *core.Result, e *core.Upload) (done bool, err error) {
	u := &s.up
	ctx, cancel := s.call()
	defer cancel()
	if u.id == "" && u.ended {
		u.crc, u.size = crc32.Checksum(u.buf, castagnoli), int64(len(u.buf))
		o, err := s.bucket.Put(ctx, u.key, u.buf, tiers.Condition{Absent: true})
		s.took(u.size, err)
		return true, s.finished(r, e, &o, err)
	}
	switch {
	case u.id == "":
		u.id, err = s.bucket.Begin(ctx, u.key)
	case len(u.buf) > 0 && (u.ended || len(u.buf) >= s.options.PartBytes):
		if s.options.PartsAtOnce > 1 {
			err = s.sendPart()
			break
		}
		part := u.buf[:min(len(u.buf), s.options.PartBytes)]
		var p tiers.Part
		p, err = s.bucket.PutPart(ctx, u.key, u.id, len(u.parts)+1, part)
		if s.took(int64(len(part)), err); err == nil {
			u.size += int64(len(part))
			u.parts = append(u.parts, p)
			u.buf = u.buf[:copy(u.buf, u.buf[len(part):])]
		}
	default:
		if err = u.await(0); err != nil {
			break
		}
		for i := range u.parts { // what a part of that very content has is not computed again
			u.crc = tiers.CombineCRC(u.crc, u.parts[i].CRC, u.parts[i].Bytes)
		}
		var o tiers.Object
		o, err = s.bucket.Finish(ctx, u.key, u.id, u.parts, tiers.Condition{Absent: true})
		return true, s.finished(r, e, &o, err)
	}
	if err != nil {
		return false, failed(r, core.StepWrite, err)
	}
	return false, nil
}

// sendPart puts a part in a goroutine, once fewer than PartsAtOnce are on their way.
func (s *Store) sendPart() error {
	u := &s.up
	if u.sent == nil {
		u.sent = make(chan sent)
	}
	if err := u.await(s.options.PartsAtOnce - 1); err != nil {
		return err
	}
	n := min(len(u.buf), s.options.PartBytes)
	body, rest := u.buf, u.buf[n:]
	u.size += int64(n)
	u.parts = append(u.parts, tiers.Part{})
	u.flying++
	key, id, number := u.key, u.id, len(u.parts)
	go func() {
		ctx, cancel := s.call()
		defer cancel()
		p, err := s.bucket.PutPart(ctx, key, id, number, body[:n])
		s.took(int64(n), err)
		p.Number = number
		u.sent <- sent{p, body, err}
	}()
	if n := len(u.spare); n > 0 {
		u.buf, u.spare = u.spare[n-1], u.spare[:n-1]
	} else {
		u.buf = make([]byte, 0, s.room())
	}
	u.buf = append(u.buf, rest...) // whoever sends body only reads it
	return nil
}

func (s *Store) took(n int64, err error) {
	if err == nil {
		s.taken.Add(n)
	}
}

// await waits until at most so many parts are on their way, and returns the first failure. After one
// it waits for all.
func (u *upload) await(most int) (err error) {
	for u.flying > most {
		x := <-u.sent
		u.flying--
		u.spare = append(u.spare, x.body[:0])
		u.parts[x.part.Number-1] = x.part
		if x.err != nil && err == nil {
			err, most = x.err, 0
		}
	}
	return err
}

// finished checks that the bucket has what was sent.
func (s *Store) finished(r *core.Result, e *core.Upload, o *tiers.Object, err error) error {
	u := &s.up
	if err != nil {
		return failed(r, core.StepWrite, err)
	}
	if o.Bytes != u.size || u.size != e.Bytes || o.HasCRC && o.CRC != u.crc {
		return failed(r, core.StepWrite, errObjectDiffers)
	}
	e.CRC, e.FooterBytes = u.crc, u.footer
	return nil
}
