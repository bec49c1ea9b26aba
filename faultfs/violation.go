package faultfs

import (
	"bytes"
	"strconv"
)

// violation is the first rule that the program under test was seen to break.
type violation struct {
	what string
	name string
	pos  int64
}

// violate records a broken rule; the first one stays.
func (d *Disk) violate(what, name string, pos int64) {
	if d.violation.what == "" {
		d.violation = violation{what, name, pos}
	}
}

// Violation describes the first rule that was broken since Reset, or is empty:
// two syncs of one file outstanding, a write into a segment sector that holds synced
// bytes, a write to a segment of an earlier life.
func (d *Disk) Violation() string {
	v := &d.violation
	if v.what == "" {
		return ""
	}
	return v.what + ": " + v.name + " at byte " + strconv.FormatInt(v.pos, 10)
}

// Broken returns the rule of Violation alone, which costs nothing; empty if none was broken.
func (d *Disk) Broken() string { return d.violation.what }

// checkWrite judges a change of segment bytes [off, end). Superblocks, which are written in place
// by design, and unfinished files are exempt.
func (d *Disk) checkWrite(fs *FS, n *inode, off, end int64) {
	if !n.segment {
		return
	}
	if n.life != fs.life {
		d.violate("write to a segment of an earlier life", n.name, off)
	}
	for s, limit := off/Sector, sectors(min(end, n.hi)); s < limit; s++ {
		if n.synced[s>>6]>>(s&63) == 0 {
			s |= 63 // none of the rest of this word
			continue
		}
		if n.synced.has(s) && !allZero(n.d[s*Sector:(s+1)*Sector]) {
			d.violate("write into a sector that holds synced bytes", n.name, s*Sector)
		}
	}
}

var zeroSector [Sector]byte

func allZero(p []byte) bool {
	for len(p) > Sector {
		if !bytes.Equal(p[:Sector], zeroSector[:]) {
			return false
		}
		p = p[Sector:]
	}
	return bytes.Equal(p, zeroSector[:len(p)])
}
