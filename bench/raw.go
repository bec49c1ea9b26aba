package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// raw is the ceiling: one thread that writes what one commit of all writers would be, rounded up
// to sectors, over blocks that are written already, and waits for the device.
type raw struct {
	file *os.File
	buf  []byte
	pos  int64
}

const (
	rawFileBytes = 64 << 20
	sectorBytes  = 512
)

// openRaw prepares the file; commitBytes is the size of a commit.
func openRaw(dir string, commitBytes int) (*raw, error) {
	if commitBytes < 1 || commitBytes > rawFileBytes {
		return nil, fmt.Errorf("raw: commit of %d bytes", commitBytes)
	}
	file, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	block := make([]byte, 1<<20)
	for at := int64(0); at < rawFileBytes; at += int64(len(block)) {
		if _, err := file.WriteAt(block, at); err != nil {
			return nil, err
		}
	}
	rounded := (commitBytes + sectorBytes - 1) / sectorBytes * sectorBytes
	return &raw{file: file, buf: block[:rounded]}, file.Sync()
}

// commit writes and syncs once.
func (r *raw) commit() error {
	if r.pos+int64(len(r.buf)) > rawFileBytes {
		r.pos = 0
	}
	r.buf[0]++
	if _, err := r.file.WriteAt(r.buf, r.pos); err != nil {
		return err
	}
	r.pos += int64(len(r.buf))
	return syscall.Fdatasync(int(r.file.Fd()))
}

func (r *raw) close() error { return r.file.Close() }
