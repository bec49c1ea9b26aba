package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"varve"
	"varve/core/topics"
	"varve/faultfs"
	"varve/tiers/disk"
)

// damagedNode is a node that is closed, and what its clients were told.
type damagedNode struct {
	tree *faultTree
	mu   sync.Mutex
	last int64 // producer id that was given out
	seen uint64
}

func newDamagedNode(t *testing.T) *damagedNode {
	t.Helper()
	n := new(damagedNode)
	n.tree = newFaultTree(&n.mu, faultfs.New())
	b, err := openTree(t.Context(), n.tree, crashOptions)
	must(t, err)
	n.last, err = b.ProducerID(t.Context())
	must(t, err)
	for _, name := range []string{"a", "b", "b", "c"} {
		if old, err := b.Topic(name); err == nil { // b exists a second time
			must(t, b.Delete(t.Context(), old.Name, 0))
		}
		x, err := b.Create(t.Context(), TopicSpec{Name: name, Partitions: 2, Config: map[string]string{"retention.ms": "60000"}})
		must(t, err)
		for i := range int32(2) {
			appendTo(t, x, i, name+fmt.Sprint(x.Incarnation, i))
		}
		n.seen = max(n.seen, x.Incarnation)
	}
	must(t, b.AddPartitions(t.Context(), "a", 3, false))
	must(t, b.Delete(t.Context(), "c", 0))
	must(t, leftovers(b, n.tree))
	must(t, b.Close(context.Background()))
	return n
}

// flip changes a byte of a file of the catalogue.
func (n *damagedNode) flip(t *testing.T, name string, at int64) {
	t.Helper()
	fs, _, err := n.tree.catalogue()
	must(t, err)
	f, err := fs.Open(name, disk.Write)
	must(t, err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	must(t, err)
	b[0] ^= 0x55
	_, err = f.WriteAt([][]byte{b}, at)
	must(t, err)
	must(t, f.Close())
}

// segmentsOf returns the files of the catalogue that hold entries, and their sizes.
func (n *damagedNode) segmentsOf(t *testing.T) (names []string, sizes []int64) {
	t.Helper()
	fs, _, err := n.tree.catalogue()
	must(t, err)
	entries, err := fs.List(nil)
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name, ".seg") {
			f, err := fs.Open(e.Name, disk.Read)
			must(t, err)
			size, err := f.Size()
			must(t, err)
			must(t, f.Close())
			names, sizes = append(names, e.Name), append(sizes, size)
		}
	}
	return names, sizes
}

// right checks that a catalogue serves everything that was there, and gives nothing out again.
func (n *damagedNode) right(r *Rebuilt) error {
	for _, want := range []struct {
		name       string
		partitions int32
	}{{"a", 3}, {"b", 2}} {
		i := slices.IndexFunc(r.Topics, func(x topics.Topic) bool { return x.Name == want.name && x.Status == topics.Live })
		if i < 0 || r.Topics[i].Partitions < want.partitions {
			return fmt.Errorf("topic %s is not there: %+v", want.name, r)
		}
	}
	for _, x := range r.Topics {
		if x.Incarnation > n.seen {
			return fmt.Errorf("a topic that never was: %+v", x)
		}
	}
	return nil
}

// TestRebuildCatalogue: whichever byte of a catalogue is damaged, what is made of the rest serves every topic and
// record that there is, removes nothing, and gives no incarnation or producer id out again.
func TestRebuildCatalogue(t *testing.T) {
	n := newDamagedNode(t)
	names, sizes := n.segmentsOf(t)
	plans, lost, applied := 0, 0, 0
	for i, name := range names {
		for at := range sizes[i] {
			n.flip(t, name, at)
			r, err := rebuildTree(t.Context(), n.tree, false)
			if err == nil {
				err = n.right(r)
			}
			if err != nil {
				t.Fatalf("%s, byte %d: %v", name, at, err)
			}
			plans++
			if r.Lost > 0 {
				lost++
			}
			if at%97 == 0 {
				applyRebuilt(t, name, at)
				applied++
			}
			n.flip(t, name, at)
		}
	}
	if lost < 500 {
		t.Errorf("%d of %d flips lost entries", lost, plans)
	}
	t.Logf("%d bytes damaged, %d of them cost entries; %d catalogues written", plans, lost, applied)
}

// applyRebuilt damages a catalogue, makes it anew, and opens the node with it.
func applyRebuilt(t *testing.T, name string, at int64) {
	t.Helper()
	n := newDamagedNode(t)
	n.flip(t, name, at)
	r, err := rebuildTree(t.Context(), n.tree, true)
	must(t, err)
	must(t, n.right(r))
	b, err := openTree(t.Context(), n.tree, crashOptions)
	if err != nil {
		t.Fatalf("%s, byte %d: %v (%+v)", name, at, err, r)
	}
	defer func() { must(t, b.Close(context.Background())) }()
	for name, incarnation := range map[string]uint64{"a": 1, "b": 3} {
		x, err := b.Topic(name)
		must(t, err)
		if x.Incarnation != incarnation {
			t.Fatalf("byte %d: topic %s is incarnation %d", at, name, x.Incarnation)
		}
		want := "60000"
		if r.Lost > 0 { // there may have been another one since
			want = "-1"
		}
		if got := x.Config()[topics.RetentionMs]; got != want {
			t.Fatalf("byte %d, %d lost: topic %s keeps %s ms", at, r.Lost, name, got)
		}
		for i := range int32(2) {
			p, err := x.Partition(i)
			must(t, err)
			must(t, p.Err())
			for rec, err := range p.Log().Records(t.Context(), varve.Position{}) {
				must(t, err)
				if string(rec.Value) != name+fmt.Sprint(incarnation, i) {
					t.Fatalf("record %q", rec.Value)
				}
			}
			if p.Log().Committed() != 1 {
				t.Fatalf("byte %d: topic %s, partition %d ends at %d", at, name, i, p.Log().Committed())
			}
		}
	}
	if id, err := b.ProducerID(t.Context()); err != nil || id <= n.last {
		t.Fatalf("byte %d: producer id %d after %d, %v", at, id, n.last, err)
	}
	x, err := b.Create(t.Context(), TopicSpec{Name: "new", Partitions: 1})
	must(t, err)
	if x.Incarnation <= n.seen {
		t.Fatalf("byte %d: incarnation %d again", at, x.Incarnation)
	}
}
