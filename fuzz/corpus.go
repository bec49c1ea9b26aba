package fuzz

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Limits of a corpus: what lies beyond them is an error, so that neither a folder named by mistake
// nor an archive that claims little and unpacks to much takes the machine's memory.
const (
	filesMax      = 1 << 16
	fileBytesMax  = 1 << 20
	totalBytesMax = 64 << 20
)

// File is one input of a corpus.
type File struct {
	Name  string
	Bytes []byte
}

// LoadCorpus reads a folder, with all below it, or a zip, in the order of names. Nothing is unpacked
// to the disk. What is no regular file is passed over.
func LoadCorpus(path string) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("fuzz corpus: %w", err)
	}
	tree := os.DirFS(path)
	if !info.IsDir() {
		z, err := zip.OpenReader(path)
		if err != nil {
			return nil, fmt.Errorf("fuzz corpus %s: %w; want a folder or a zip", path, err)
		}
		defer z.Close()
		if len(z.File) > filesMax {
			return nil, fmt.Errorf("fuzz corpus %s: %d entries, at most %d are read", path, len(z.File), filesMax)
		}
		tree = z
	}
	c := collector{tree: tree, path: path}
	if err := fs.WalkDir(tree, ".", c.visit); err != nil {
		return nil, err
	}
	if len(c.files) == 0 {
		return nil, fmt.Errorf("fuzz corpus %s: no files in it", path)
	}
	return c.files, nil
}

type collector struct {
	tree  fs.FS
	path  string
	files []File
	total int
}

func (c *collector) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return fmt.Errorf("fuzz corpus %s: %w", filepath.Join(c.path, name), err)
	}
	if !d.Type().IsRegular() {
		return nil
	}
	if len(c.files) == filesMax {
		return fmt.Errorf("fuzz corpus %s: more than %d files", c.path, filesMax)
	}
	b, err := c.read(name)
	if err != nil {
		return fmt.Errorf("fuzz corpus %s: %w", filepath.Join(c.path, name), err)
	}
	if c.total += len(b); c.total > totalBytesMax {
		return fmt.Errorf("fuzz corpus %s: more than %d bytes in all", c.path, totalBytesMax)
	}
	c.files = append(c.files, File{name, b})
	return nil
}

// read reads one file. What it says of its size is not believed: the read itself is bounded.
func (c *collector) read(name string) (b []byte, err error) {
	f, err := c.tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err == nil && len(b) > fileBytesMax {
		err = fmt.Errorf("more than %d bytes", fileBytesMax)
	}
	return b, err
}
