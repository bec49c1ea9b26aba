package dirbucket

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path"
	"sort"
	"syscall"
	"time"

	"varve/tiers"
)

// tmp is a file being written. It is locked, so that others see that its writer lives.
type tmp struct {
	b       *Bucket
	name    string // "" when it has been placed
	final   string // the name in its trailer
	file    *os.File
	trailer trailer
}

// newTmp begins a file that is to get a name.
func (b *Bucket) newTmp(final string) (*tmp, error) {
	if b.sealed {
		return nil, errReadOnly
	}
	var draw [24]byte
	_, _ = rand.Read(draw[:]) // never fails
	t := &tmp{b: b, final: final, name: tmpDir + "/" + hex.EncodeToString(draw[:16])}
	t.trailer.nonce = binary.LittleEndian.Uint64(draw[16:])
	var err error
	if t.file, err = b.root.OpenFile(t.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode); err != nil {
		return nil, err
	}
	if err = flock(t.file, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.remove()
		return nil, fmt.Errorf("lock %s: %w", t.name, err)
	}
	return t, nil
}

// Write appends bytes of the object.
func (t *tmp) Write(p []byte) (int, error) {
	n, err := t.file.Write(p)
	t.trailer.crc = crc32.Update(t.trailer.crc, castagnoli, p[:n])
	t.trailer.bytes += int64(n)
	return n, err
}

// finish ends the file with its trailer and syncs it.
func (t *tmp) finish() error {
	if _, err := t.file.Write(t.trailer.append(nil, t.final)); err != nil {
		return err
	}
	if err := t.b.syncFile(t.file); err != nil {
		return fmt.Errorf("sync %s: %w", t.name, err)
	}
	return nil
}

// rename gives the finished file its name.
func (t *tmp) rename(name string) error {
	if info, err := t.b.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is a folder or link, no object: name the key otherwise", tiers.ErrInvalid, name)
	}
	if err := t.b.root.Rename(t.name, name); err != nil {
		return err
	}
	t.name = ""
	return nil
}

// remove ends the work on the file, and takes it away unless it was placed.
func (t *tmp) remove() {
	if t.name != "" {
		_ = t.b.root.Remove(t.name) // what stays is found by sweep
	}
	_ = t.file.Close()
}

// A Leftover is a file that a killed or failed writer left. It is served to nobody.
type Leftover struct {
	Path     string // below the bucket's directory
	Bytes    int64
	Modified time.Time
}

// leftoverAge is how old an unlocked file in tmp is at least when the next Open removes it: more than
// a writer needs between making it and locking it.
const leftoverAge = time.Hour

// Leftovers lists what writers that died left behind, oldest first. Open removes it after an hour.
// Uploads that nobody goes on with are listed by Uploads.
func (b *Bucket) Leftovers(ctx context.Context) ([]Leftover, error) {
	if err := b.usable(ctx); err != nil {
		return nil, b.fail("list", tmpDir, err)
	}
	list, err := fs.ReadDir(b.root.FS(), tmpDir)
	if err != nil {
		return nil, b.fail("list", tmpDir, err)
	}
	var out []Leftover
	for _, e := range list {
		name := path.Join(tmpDir, e.Name())
		info, err := b.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !b.abandoned(name, info) {
			continue
		}
		if err != nil {
			return nil, b.fail("list", name, err)
		}
		out = append(out, Leftover{Path: name, Bytes: info.Size(), Modified: info.ModTime()})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Modified.Before(out[j].Modified) })
	return out, nil
}

// abandoned reports whether no living process writes a file or folder in tmp.
func (b *Bucket) abandoned(name string, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() {
		return true // an upload that was aborted and not removed whole
	}
	f, _, err := openRegular(b.root, name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// sweep removes old leftovers. What cannot be removed stays listed.
func (b *Bucket) sweep() {
	list, _ := b.Leftovers(context.Background())
	for _, l := range list {
		if time.Since(l.Modified) > leftoverAge {
			_ = b.root.RemoveAll(l.Path)
		}
	}
}
