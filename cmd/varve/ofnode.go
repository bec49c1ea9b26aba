package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"varve"
	"varve/core/topics"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// nodePlace is what a log is to the node in whose directory it lies: its catalogue, or a partition.
type nodePlace struct {
	node        string // its directory
	topic       string // "" of the catalogue
	incarnation uint64
	partition   int32
}

// placeInNode returns what the log in a directory is to a node, nil if it lies in none.
func placeInNode(dir string) *nodePlace {
	full, err := filepath.Abs(dir)
	if err != nil || dir == "" {
		return nil
	}
	full = resolved(full)
	if filepath.Base(full) == catalogueDir && isNode(filepath.Dir(full)) {
		return &nodePlace{node: filepath.Dir(full)}
	}
	parts := strings.Split(full, string(filepath.Separator))
	if len(parts) < 5 {
		return nil
	}
	parts = parts[len(parts)-4:]
	incarnation, err1 := strconv.ParseUint(parts[2], 10, 62)
	partition, err2 := strconv.ParseUint(parts[3], 10, 31)
	node := filepath.Join(full, "../../../..")
	if parts[0] != topicsDir || topics.CheckName(parts[1]) != nil || err1 != nil || err2 != nil || !isNode(node) {
		return nil
	}
	return &nodePlace{node: node, topic: parts[1], incarnation: incarnation, partition: int32(partition)}
}

// isNode reports whether a directory is that of a node: it has a catalogue beside its topics, or its lock.
func isNode(dir string) bool {
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	return there(catalogueDir) && (there(topicsDir) || there(nodeLock))
}

// nodeLock is the file that a running node has locked in its directory.
const nodeLock = "lock"

func (p *nodePlace) String() string {
	if p.topic == "" {
		return "the catalogue of the node " + p.node
	}
	return fmt.Sprintf("partition %d of topic %s of the node %s", p.partition, p.topic, p.node)
}

// inBucket returns what the partition is called below cold.url: of is the node's name there, or already the
// partition's, as who gives it to a command may do.
func (p *nodePlace) inBucket(of string) (string, error) {
	rest := fmt.Sprintf("/%s/%d/%d", p.topic, p.incarnation, p.partition)
	if strings.HasSuffix(of, rest) {
		return of, nil
	}
	id, err := nodeID(p.node)
	if err != nil {
		return "", p.nameless("cold.name", err)
	}
	return of + "/" + id + rest, nil
}

// inWarm is inBucket for the warm tier.
func (p *nodePlace) inWarm(of string) (string, error) {
	if strings.HasSuffix(of, fmt.Sprintf(".%d.%d", p.incarnation, p.partition)) {
		return of, nil
	}
	id, err := nodeID(p.node)
	if err != nil {
		return "", p.nameless("warm.name", err)
	}
	return warmName(of, id, p.topic, p.incarnation, p.partition), nil
}

func (p *nodePlace) nameless(key string, err error) error {
	return fmt.Errorf("it is %s, whose catalogue does not say what it is called in the tiers; set %s: %v", p, key, oneLine(err))
}

// refuseOfNode says why a command that appends to a log, or moves its records, is not for the one in a directory: it
// is a node's. A node's logs are known by where they lie, and by what is in them wherever they were copied.
func refuseOfNode(dir string) error {
	if p := placeInNode(dir); p != nil {
		next := "its records come and go by the node alone: start it (varve serve --dir " + p.node + "), and use a client of Kafka's, such as kcat, with its address"
		if p.topic == "" {
			next = "it is written by the node alone: start it (varve serve --dir " + p.node + "), and use varve topic"
		}
		return usageError{fmt.Errorf("%s is %s; %s", dir, p, next)}
	}
	if varve.NewestKind(osfs.New(dir)) == varve.KindKafka {
		return usageError{fmt.Errorf("%s holds RecordBatches of Kafka's: it is a partition of a node, or a copy of one, and a record of another kind would stand in the way of its clients; read it with varve log read, write through the node's address", dir)}
	}
	return nil
}

// nodeName is what a partition of a node is called in the bucket.
var nodeName = regexp.MustCompile(`^(.*/)?[0-9a-f]{16}/[^/]+/[0-9]+/[0-9]+$`)

// refuseNameOfNode says that a log would be opened for appends under the name of a node's partition: it would
// take that from its node.
func (s *settings) refuseNameOfNode() error {
	if !nodeName.MatchString(s.ColdName) {
		return nil
	}
	return usageError{fmt.Errorf("cold.name %s is that of a partition of a node, which an append or an offload from here would take away from it; varve log read and varve cold scrub take that name", s.ColdName)}
}

// refuseBesideNode says that a node runs, and what is to be done to one of its logs has to wait until it does not:
// it would open that log again at any moment.
func refuseBesideNode(dir string) error {
	p := placeInNode(dir)
	if p == nil {
		return nil
	}
	lock, err := osfs.New(p.node).Lock(nodeLock)
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("%s is %s, which is running: end it first", dir, p)
	}
	if err != nil {
		return err
	}
	return lock.Close()
}
