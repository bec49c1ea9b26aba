package segment

// ScanFile is what a Scanner needs to know of one segment file.
type ScanFile struct {
	Source      Source
	Bytes       int64
	ID          ID     // from the file's name
	Base        Offset // from the file's name
	LogID       LogID
	SectorBytes int    // used where the file's own header does not verify
	Index       Source // sidecar index; nil: none
	IndexBytes  int64
	Lineage     []Lineage // batches that it voids do not count for producers; nil: all count
}

// Batch is one batch that verifies, as a Scanner meets it.
type Batch struct {
	Pos       int64
	Placement Placement
	Identity  Identity
	Chain     uint32 // CRC of this batch's placement header
	Raw       []byte // headers and payload; valid until the next call of the Scanner
	First     bool   // it starts a run
}

// Scanner finds out what is in a segment file. It keeps its memory from file to file and is used by
// one goroutine at a time. Whatever the bytes are, it never reads one twice more than a constant
// number of times and holds no more of them than a window and the longest batch.
type Scanner struct {
	w         window // on the file
	aux       window // on footers
	file      ScanFile
	info      *FileInfo
	own       FileInfo // for Start
	placement uint32   // seeds
	logID     LogID    // of identity
	identity  uint32
	headerCRC uint32
	sector    int64
	footer    int64 // where the footer starts according to the trailer; -1: no trailer verifies
	producers producerTable

	state   scanState
	pos     int64 // where the next batch is expected, or where the walk stands
	run     Run   // the current run
	begun   bool  // run counts
	chained bool  // run.Chain is what the next batch must name; false only with a damaged header
	epoch   Epoch // of the batches, 0: not known yet
	after   int64 // walk: end of a batch whose payload is bad, worth a try
	budget  int64 // walk: payload bytes that may still be verified
}

type scanState uint8

const (
	scanFollow scanState = iota // a run, or the expectation of the first one
	scanWalk                    // behind a break: look for headers from each next sector boundary
	scanDone
)

// Scan verifies a file and fills in info, reusing its memory. Without whole, a footer or a sidecar
// index that verifies and agrees with header and name is enough; without either the file is scanned
// whole all the same. An error is a read error; damage is a finding.
func (s *Scanner) Scan(f *ScanFile, whole bool, info *FileInfo) error {
	ahead := int64(quickBytes)
	if whole {
		ahead = windowBytes
	}
	if err := s.open(f, info, ahead); err != nil || s.state == scanDone {
		return err
	}
	if !whole && info.Verdict == HeaderGood && (info.Sealed || info.Sidecar) {
		info.Epoch, s.state = info.Footer.Epoch, scanDone
		return nil
	}
	var b Batch
	for {
		more, err := s.Next(&b)
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// quickBytes is what a quick scan reads first: the header, and with it all of a small file.
const quickBytes = 4096

// Start begins to go through the batches of a file one by one, with Next.
func (s *Scanner) Start(f *ScanFile) error { return s.open(f, &s.own, windowBytes) }

// Info returns the findings of a walk with Start and Next, complete once Next has returned false.
func (s *Scanner) Info() *FileInfo { return s.info }

// HeaderCRC returns the CRC of the file's header, 0 where that is damaged.
func (s *Scanner) HeaderCRC() uint32 { return s.headerCRC }

// DataPos returns where the first batch is expected.
func (s *Scanner) DataPos() int64 { return s.sector }

// open reads header and trailer and decides whether batches are to be looked for.
func (s *Scanner) open(f *ScanFile, info *FileInfo, ahead int64) error {
	s.file, s.info = *f, info
	*info = FileInfo{Bytes: f.Bytes, Runs: info.Runs[:0], Producers: info.Producers[:0]}
	s.w.reset(f.Source, f.Bytes)
	s.producers.reset()
	s.footer, s.headerCRC, s.state, s.begun, s.after = -1, 0, scanDone, false, 0
	if s.identity == 0 || s.logID != f.LogID {
		s.logID, s.identity = f.LogID, IdentitySeed(f.LogID)
	}
	s.placement = PlacementSeedOf(s.identity, f.ID)
	if err := s.readHeader(ahead); err != nil {
		return err
	}
	if info.Verdict > HeaderDamaged || f.Bytes < HeaderBytes {
		return nil
	}
	s.sector = int64(info.Header.SectorBytes)
	if err := s.readFooter(); err != nil {
		return err
	}
	s.state, s.pos = scanFollow, s.sector
	s.run = Run{First: f.Base, End: f.Base, Pos: s.sector, EndPos: s.sector, Chain: s.headerCRC}
	s.chained, s.epoch = info.Verdict == HeaderGood, info.Header.Epoch
	s.budget = 4 * f.Bytes
	return nil
}

func (s *Scanner) readHeader(ahead int64) error {
	f, info := &s.file, s.info
	h, crc, verdict, version := Header{}, uint32(0), HeaderDamaged, uint16(0)
	if n := min(f.Bytes, HeaderBytes); n > 0 {
		b, err := s.w.load(0, n, ahead)
		if err != nil {
			return err
		}
		h, crc, verdict, version = ReadHeader(b)
	}
	if verdict == HeaderGood {
		switch {
		case h.LogID != f.LogID:
			verdict = HeaderForeign
		case h.ID != f.ID || h.Base != f.Base:
			verdict = HeaderMisnamed
		}
	}
	if verdict == HeaderDamaged {
		check(validSector(uint32(f.SectorBytes)), "sector size of a scan")
		h = Header{Kind: Created, SectorBytes: uint32(f.SectorBytes), LogID: f.LogID, ID: f.ID, Base: f.Base}
	}
	if verdict == HeaderGood {
		s.headerCRC = crc
	}
	info.Header, info.Verdict, info.Version = h, verdict, version
	return nil
}

// readFooter looks for a footer at the end of the file, and in the sidecar where there is none.
func (s *Scanner) readFooter() error {
	f, info := &s.file, s.info
	w, err := &s.w, error(nil)
	if int64(w.n) < f.Bytes { // the window stays where it is
		w = &s.aux
		w.reset(f.Source, f.Bytes)
	}
	info.Sealed, err = s.takeFooter(w, false)
	if err != nil || info.Sealed || f.Index == nil {
		return err
	}
	s.aux.reset(f.Index, f.IndexBytes)
	if info.Sidecar, err = s.takeFooter(&s.aux, true); err != nil {
		info.Sidecar = false // derived: what cannot be read is not needed
	}
	return nil
}

// takeFooter reads trailer and producers of one footer. Only a footer that verifies and agrees with
// header and name counts.
func (s *Scanner) takeFooter(w *window, sidecar bool) (ok bool, err error) {
	f, info, size := &s.file, s.info, w.size
	if size < TrailerBytes {
		return false, nil
	}
	b, err := w.bytes(size-TrailerBytes, TrailerBytes)
	if err != nil {
		return false, err
	}
	ft, l, ok := readTrailer(b, size, s.placement, f.ID, sidecar)
	if !ok || !s.agrees(&ft, &l) {
		return false, nil
	}
	if !sidecar {
		s.footer = l.Pos
	}
	if l.Producers > 0 {
		pos, n := l.producersAt()
		if b, err = w.bytes(pos, n); err != nil {
			return false, err
		}
		if info.Producers, ok = l.readProducers(b, info.Producers[:0]); !ok {
			return false, nil
		}
	}
	info.Footer = ft
	return true, nil
}

// agrees compares a footer with what header and name say.
func (s *Scanner) agrees(ft *Footer, l *Layout) bool {
	h := &s.info.Header
	if ft.Base != s.file.Base || ft.DataEnd > s.file.Bytes || l.DataPos < s.sector {
		return false
	}
	return s.info.Verdict != HeaderGood || ft.HeaderCRC == s.headerCRC && ft.Epoch == h.Epoch &&
		(h.Kind == Created || ft.End <= h.End)
}

// Next goes on to the next batch that verifies, in file order and over breaks. False means that
// there are no more and that the findings are complete.
func (s *Scanner) Next(b *Batch) (bool, error) {
	for s.state != scanDone {
		var ok bool
		var err error
		if s.state == scanFollow {
			ok, err = s.follow(b)
		} else {
			ok, err = s.walk(b)
		}
		if err != nil {
			return false, err
		}
		if ok {
			s.accept(b)
			return true, nil
		}
	}
	return false, nil
}

// accept takes a batch that verifies and follows into the current run.
func (s *Scanner) accept(b *Batch) {
	r, i := &s.run, &b.Identity
	b.First = !s.begun
	if b.First {
		s.begun = true
		*r = Run{First: i.Base, Pos: b.Pos, MinTime: i.MaxTime, MaxTime: i.MaxTime}
	}
	s.pos = b.Pos + int64(len(b.Raw))
	r.End, r.EndPos = i.End(), s.pos
	r.Batches++
	r.MinTime, r.MaxTime = min(r.MinTime, i.MaxTime), max(r.MaxTime, i.MaxTime)
	r.AppendTime = i.AppendTime
	r.Commit, r.Chain = b.Placement.Commit, b.Chain
	s.info.Epoch = i.Epoch
	s.state = scanFollow
	if len(s.info.Runs) == 0 && i.ProducerID >= 0 && owns(s.file.Lineage, i) {
		s.producers.add(i)
	}
}

// owns reports whether a batch's epoch owns its offset.
func owns(lineage []Lineage, i *Identity) bool {
	n := len(lineage)
	for n > 0 && lineage[n-1].First > i.Base {
		n--
	}
	return lineage == nil || n > 0 && lineage[n-1].Epoch == i.Epoch
}

// finish completes the findings.
func (s *Scanner) finish() {
	info := s.info
	s.state = scanDone
	info.Scanned = true
	info.Producers = s.producers.appendTo(info.Producers[:0])
	if len(info.Runs) == 0 {
		return
	}
	r, h := &info.Runs[0], &info.Header
	if info.Verdict == HeaderDamaged && info.Epoch != info.Header.ID.Owner() {
		h.Kind, h.End = Replacement, r.End
	}
	// A footer is never trusted over records: where these simply end elsewhere it is none.
	ft := &info.Footer
	if info.Sealed && r.Break == BreakNone && (ft.End != r.End || ft.DataEnd != r.EndPos) {
		info.Sealed, info.Footer = false, Footer{}
	}
	if info.Sidecar && (ft.End > r.End || ft.DataEnd > r.EndPos) {
		info.Sidecar, info.Footer = false, Footer{}
	}
}
