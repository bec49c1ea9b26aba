package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"varve"
	"varve/core/segment"
	"varve/tiers"
	"varve/tiers/dirbucket"
	"varve/tiers/valkey"
)

// What is in the directory of a node.
const (
	catalogueDir = "catalogue" // a log
	topicsDir    = "topics"    // name, incarnation, partition: a log each
)

// nodeTiers are the tiers of a node: one bucket and one Valkey server for all its partitions. Each has a
// name of its own there, which tells nodes and incarnations apart: a topic that is created anew never
// finds what another one of its name left behind.
type nodeTiers struct {
	*logTiers
	dir  string
	name string // of the node in the warm tier

	mu    sync.Mutex
	known string // id of the node, once it could be read
}

// id returns what tells the node from all others. A failure may pass, and is not kept.
func (t *nodeTiers) id() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == "" {
		id, err := nodeID(t.dir)
		if err != nil {
			return "", err
		}
		t.known = id
	}
	return t.known, nil
}

// openNodeTiers makes the tiers of a configuration ready for the node in a directory.
func (s *nodeSettings) openNodeTiers(ctx context.Context, out *streams) (*nodeTiers, error) {
	fresh := !holdsLog(filepath.Join(s.Dir, catalogueDir))
	use := writes
	if s.Create && (fresh || s.AcceptLoss || !s.anyManifestSeen()) {
		use = makes
	}
	t, err := s.openTiers(ctx, out, s.Dir, use)
	if err != nil {
		return nil, err
	}
	n := &nodeTiers{logTiers: t, dir: s.Dir}
	if s.warm() {
		if n.name, _, err = s.warmKey(s.Dir); err != nil {
			t.close()
			return nil, err
		}
	}
	switch down := cmp.Or(t.down, t.warm.down); {
	case fresh && errors.Is(down, dirbucket.ErrAbsent):
		t.close()
		return nil, fmt.Errorf("cold.url: %w; to begin a new bucket: --create", down)
	case fresh && down != nil:
		t.close()
		return nil, fmt.Errorf("a new node needs its tiers, and one does not answer: %w", down)
	case down == nil && fresh && !s.Create:
		if err := n.refuseOther(ctx); err != nil {
			t.close()
			return nil, err
		}
	case down != nil:
		out.note("varve: warning: a tier does not answer; what is on disk is served, and appends wait for it: %v", oneLine(down))
	}
	return n, nil
}

// refuseOther refuses to begin a new node under a name in the bucket that another one has: it is more likely that
// the directory of that one is not mounted, or lost, than that somebody wants two.
func (t *nodeTiers) refuseOther(ctx context.Context) error {
	if t.bucket == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	list, err := t.bucket.List(ctx, t.prefix, "", 1)
	if err != nil {
		return fmt.Errorf("cold.url: look whether a node has %s already: %w", t.place, err)
	}
	if len(list) == 0 {
		return nil
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(list[0].Key, t.prefix), "/")
	return fmt.Errorf("%s holds no node, and %s holds topics of node %s: is the disk mounted? To begin a new node beside them: --create", t.dir, t.place, id)
}

// anyManifestSeen reports whether a partition of the node knows of a manifest, as manifestSeen does for a
// log.
func (s *nodeSettings) anyManifestSeen() bool {
	dirs, _ := filepath.Glob(filepath.Join(s.Dir, topicsDir, "*", "*", "*")) // the pattern is well-formed unless dir is strange: then none is known
	for _, dir := range dirs {
		if manifestSeen(dir) {
			return true
		}
	}
	return false
}

// nodeID returns what tells a node from all others: what its catalogue was given when it was made.
func nodeID(dir string) (string, error) {
	var failed error
	for _, name := range superNames {
		var s segment.Superblock
		b, err := readAtMost(filepath.Join(dir, catalogueDir), name, segment.SuperBytesMax+1)
		if err == nil {
			err = segment.ReadSuper(b, &s)
		}
		if err == nil {
			return fmt.Sprintf("%x", s.LogID[:8]), nil
		}
		failed = errors.Join(failed, err)
	}
	return "", failed
}

// of returns the tiers of a partition. Incarnation 0 is none, which is asked about before there is a
// catalogue.
func (t *nodeTiers) of(topic string, incarnation uint64, partition int32) (cold tiers.Bucket, prefix string, warm varve.WarmOptions) {
	cold, warm = t.bucket, t.warm.options
	if incarnation == 0 {
		return cold, "", warm
	}
	id, err := t.id()
	if err != nil { // the catalogue is open: it has a superblock
		return cold, fmt.Sprintf("no place, as the node is unknown: %v", err), varve.WarmOptions{Dialer: warm.Dialer} // which is refused
	}
	if cold != nil {
		prefix = fmt.Sprintf("%s%s/%s/%d/%d/", t.prefix, id, topic, incarnation, partition)
	}
	if warm.Dialer != nil {
		warm.Name = warmName(t.name, id, topic, incarnation, partition)
	}
	return cold, prefix, warm
}

// warmName is what a partition is called in the warm tier. A name has a limit: of long ones the first part
// is there, for people, and the rest tells it from all others.
func warmName(node, id, topic string, incarnation uint64, partition int32) string {
	rest := "." + id + "." + strconv.FormatUint(incarnation, 10) + "." + strconv.Itoa(int(partition))
	first := node + "." + topic
	return first[:min(len(first), valkey.NameBytesMax-len(rest))] + rest
}
