package core

// warmStats says how far the warm tier is behind, and what keeps it.
func (l *Log) warmStats(s *Stats) {
	w := &l.warm
	s.WarmFrom, s.WarmEnd, s.WarmWaived = w.from, w.end, w.waived
	s.WarmStalled, s.WarmError, s.WarmUnsafe = w.stalled, kept(w.failure), w.unsafe
	for i := range w.spans {
		s.WarmBytes += w.spans[i].Bytes
	}
	if w.end < l.written {
		s.WarmLagBytes = l.bytesFrom(w.end)
	}
}

// WarmTrouble returns WarmUnsafe and WarmError of Stats, at little cost.
func (l *Log) WarmTrouble() (unsafe uint32, failure error) {
	return l.warm.unsafe, kept(l.warm.failure)
}

// WarmSpan returns WarmFrom and WarmEnd of Stats, and whether there is a WarmError, at little cost.
func (l *Log) WarmSpan() (from, end Offset, failing bool) {
	return l.warm.from, l.warm.end, l.warm.failure != nil
}

// WarmStalled reports whether what is written has waited too long for the warm tier.
func (l *Log) WarmStalled() bool { return l.warm.stalled }

// kept returns an error that nobody overwrites: the core reuses the memory of some.
func kept(err error) error {
	switch e := err.(type) { //nolint:errorlint // these very ones, which are not wrapped
	case *warmShortError:
		c := *e
		return &c
	case *IOError:
		c := *e
		return &c
	}
	return err
}

// bytesFrom counts the bytes on disk from an offset on: of sealed files all, of the active one what lies
// behind the offset.
func (l *Log) bytesFrom(o Offset) (bytes int64) {
	for i := range l.extents {
		x := &l.extents[i]
		switch {
		case x.End <= o:
		case x.End != EndNone:
			bytes += x.Bytes
		default:
			a := &l.tail.active
			pos, _, ok := a.footer.Lookup(o)
			if !ok {
				pos = a.dataPos
			}
			bytes += a.pos - pos
		}
	}
	return bytes
}
