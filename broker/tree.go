package broker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"varve/core/topics"
	"varve/tiers/disk"
	"varve/tiers/disk/osfs"
)

// tree is where a node's directories are.
type tree interface {
	// name returns what messages call the node's directory.
	name() string
	// lock takes the node's directory for this process, and makes it if it is missing.
	lock() (io.Closer, error)
	// catalogue returns the directory of the catalogue, and whether it is there.
	catalogue() (fs disk.FS, there bool, err error)
	// partition returns the directory of a partition's log.
	partition(d topics.Dir) disk.FS
	// list finds the directories of partitions, and what lies in their place and is something else.
	list(dirs []topics.Dir, others []string) ([]topics.Dir, []string, error)
	// remove removes the directory of a partition, or of an incarnation (Partition -1) that has none,
	// durably. A missing one is no error.
	remove(d topics.Dir) error
	// vacate removes the directory of a partition that was missing before an open that failed, as long as it is
	// empty: what is restored is put in its place, and not into what the open has made.
	vacate(d topics.Dir)
}

// Names in a node's directory.
const (
	lockName      = "lock"
	catalogueName = "catalogue"
	topicsName    = "topics"
)

// dirTree is a tree in a directory of the operating system.
type dirTree struct {
	dir string
	mu  sync.Mutex // a directory of a topic's name is not removed while one in it is made
}

func (t *dirTree) name() string { return t.dir }

func (t *dirTree) lock() (io.Closer, error) {
	fs := osfs.New(t.dir)
	if err := fs.Mkdir(disk.DirLog); err != nil {
		return nil, err
	}
	entries, err := fs.List(nil)
	if err != nil {
		return nil, err
	}
	ours, stranger := false, ""
	for _, e := range entries {
		switch {
		case e.Dir && (e.Name == catalogueName || e.Name == topicsName):
			ours = true
		case e.Name != lockName && e.Name != "lost+found":
			stranger = e.Name
		}
	}
	if stranger != "" && !ours {
		return nil, fmt.Errorf("it is not empty and holds no node (found %s); choose an empty directory", stranger)
	}
	return fs.Lock(lockName)
}

func (t *dirTree) catalogue() (disk.FS, bool, error) {
	dir := filepath.Join(t.dir, catalogueName)
	_, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return osfs.New(dir), false, nil
	}
	return osfs.New(dir), err == nil, err
}

// path returns where a directory of topics is.
func (t *dirTree) path(d topics.Dir) string {
	dir := filepath.Join(t.dir, topicsName, d.Topic, strconv.FormatUint(d.Incarnation, 10))
	if d.Partition < 0 {
		return dir
	}
	return filepath.Join(dir, strconv.Itoa(int(d.Partition)))
}

// partitionFS is the directory of a partition's log, whose parents may come and go beside it.
type partitionFS struct {
	*osfs.FS
	of *dirTree
}

// Mkdir implements disk.FS.
func (f partitionFS) Mkdir(dir string) error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return f.FS.Mkdir(dir)
}

func (t *dirTree) partition(d topics.Dir) disk.FS { return partitionFS{osfs.New(t.path(d)), t} }

func (t *dirTree) list(dirs []topics.Dir, others []string) ([]topics.Dir, []string, error) {
	root := filepath.Join(t.dir, topicsName)
	names, err := readDir(root)
	for _, name := range names {
		if !name.IsDir() || topics.CheckName(name.Name()) != nil {
			others = append(others, filepath.Join(topicsName, name.Name()))
			continue
		}
		if dirs, others, err = listTopic(root, name.Name(), dirs, others); err != nil {
			break
		}
	}
	return dirs, others, err
}

// listTopic finds the incarnations of a topic.
func listTopic(root, topic string, dirs []topics.Dir, others []string) ([]topics.Dir, []string, error) {
	incarnations, err := readDir(filepath.Join(root, topic))
	if err != nil {
		return dirs, others, err
	}
	for _, x := range incarnations {
		n, ok := number(x, 62)
		if !ok {
			others = append(others, filepath.Join(topicsName, topic, x.Name()))
			continue
		}
		dirs = append(dirs, topics.Dir{Topic: topic, Incarnation: n, Partition: -1})
		partitions, err := readDir(filepath.Join(root, topic, x.Name()))
		if err != nil {
			return dirs, others, err
		}
		for _, y := range partitions {
			p, ok := number(y, 31)
			if !ok {
				others = append(others, filepath.Join(topicsName, topic, x.Name(), y.Name()))
				continue
			}
			dirs = append(dirs, topics.Dir{Topic: topic, Incarnation: n, Partition: int32(p)})
		}
	}
	return dirs, others, nil
}

// readDir is os.ReadDir where a directory that is missing, or goes meanwhile, is empty.
func readDir(dir string) ([]os.DirEntry, error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return all, err
}

// number reads the name of a directory that is a number in its one form.
func number(e os.DirEntry, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(e.Name(), 10, bits)
	return n, err == nil && e.IsDir() && strconv.FormatUint(n, 10) == e.Name()
}

func (t *dirTree) remove(d topics.Dir) error {
	dir := t.path(d)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if d.Partition >= 0 {
		return syncDir(filepath.Dir(dir))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	topic := filepath.Dir(dir)
	if err := syncDir(topic); err != nil {
		return err
	}
	if left, err := os.ReadDir(topic); err != nil || len(left) > 0 { // another incarnation is there, or the topic is not
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return err
	}
	if err := os.Remove(topic); err != nil {
		return err
	}
	return syncDir(filepath.Dir(topic))
}

func (t *dirTree) vacate(d topics.Dir) {
	t.mu.Lock()
	defer t.mu.Unlock()
	root := filepath.Join(t.dir, topicsName)
	for dir := t.path(d); dir != root && syscall.Rmdir(dir) == nil; {
		dir = filepath.Dir(dir)
	}
}

// syncDir makes the names in a directory durable, if it is there.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
