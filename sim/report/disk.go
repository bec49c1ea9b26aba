package report

import (
	"hash/maphash"
	"slices"

	"varve/faultfs"
	"varve/sim"
)

// rows are the files as the last moment left them.
type rows struct{ all []row }

// row is one name: what processes see under it, or what the device still holds under it.
type row struct {
	key      string
	present  bool
	seen     bool
	last     change
	cells    [][3]int
	contents []map[uint64]int // of each sector: content by its hash
}

// changes returns what is different from the moment before.
func (r *rows) changes(states []faultfs.FileState, story *Story, seed maphash.Seed) []change {
	var out []change
	for i := range r.all {
		r.all[i].seen = false
	}
	for i := range states {
		f := &states[i]
		x, n := r.find(f, story)
		x.seen = true
		c := change{File: n, Live: f.Live, Durable: f.Durable, Kernel: len(f.Kernel), Device: len(f.Device)}
		changed := !x.present || c.Live != x.last.Live || c.Durable != x.last.Durable || c.Kernel != x.last.Kernel || c.Device != x.last.Device
		x.present, x.last = true, c
		c.Sectors = x.sectors(f, seed)
		if changed || len(c.Sectors) > 0 {
			out = append(out, c)
		}
	}
	for i := range r.all {
		if x := &r.all[i]; x.present && !x.seen {
			x.present, x.cells = false, nil
			out = append(out, change{File: i, Gone: true})
		}
	}
	return out
}

func (r *rows) find(f *faultfs.FileState, story *Story) (*row, int) {
	key := f.Name
	if f.Dir != "" {
		key = f.Dir + "/" + key
	}
	if !f.Live {
		key += " (on the device only)"
	}
	n := slices.IndexFunc(r.all, func(x row) bool { return x.key == key })
	if n < 0 {
		n = len(r.all)
		r.all = append(r.all, row{key: key})
		story.Files = append(story.Files, key)
	}
	return &r.all[n], n
}

// sectors returns the sectors that changed.
func (x *row) sectors(f *faultfs.FileState, seed maphash.Seed) [][]int {
	var out [][]int
	total := (max(len(f.Kernel), len(f.Device)) + faultfs.Sector - 1) / faultfs.Sector
	x.cells = x.cells[:min(len(x.cells), total)]
	for s := range total {
		cell := [3]int{x.content(s, f.Kernel, seed), x.content(s, f.Device, seed), int(f.State(int64(s)))}
		switch {
		case s >= len(x.cells):
			x.cells = append(x.cells, cell)
		case x.cells[s] == cell:
			continue
		default:
			x.cells[s] = cell
		}
		out = append(out, []int{s, cell[0], cell[1], cell[2]})
	}
	return out
}

// content numbers what a sector holds.
func (x *row) content(s int, b []byte, seed maphash.Seed) int {
	if s*faultfs.Sector >= len(b) {
		return beyond
	}
	b = b[s*faultfs.Sector : min(len(b), (s+1)*faultfs.Sector)]
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		return zeros
	}
	for s >= len(x.contents) {
		x.contents = append(x.contents, map[uint64]int{})
	}
	h := maphash.Bytes(seed, b)
	n, ok := x.contents[s][h]
	if !ok {
		n = len(x.contents[s]) + 1
		x.contents[s][h] = n
	}
	return n
}

// sortTracks puts the tracks in the order of package sim, whatever came first.
func (s *Story) sortTracks(order []sim.Track) {
	sorted := slices.Clone(order)
	slices.Sort(sorted)
	to := make([]int, len(order))
	for i, x := range order {
		to[i] = slices.Index(sorted, x)
	}
	for _, x := range sorted {
		s.Tracks = append(s.Tracks, x.String())
	}
	for i := range s.Moments {
		s.Moments[i].Track = to[s.Moments[i].Track]
	}
}
