package dirbucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"varve/tiers"
)

// List implements tiers.Bucket. An object that is damaged is listed without a tag.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	err := errors.Join(tiers.CheckPrefix(prefix), b.usable(ctx))
	if err == nil && (limit < 1 || limit > tiers.PageMax) {
		err = fmt.Errorf("%w: a limit of %d: want 1 to %d", tiers.ErrInvalid, limit, tiers.PageMax)
	}
	w := walk{b: b, ctx: ctx, prefix: prefix, after: after, limit: limit}
	if err == nil {
		err = w.folder(".", "")
	}
	if err == nil {
		err = b.settle(ctx)
	}
	if err != nil {
		return nil, b.fail("list", prefix, err)
	}
	return w.out, nil
}

// walk collects objects in the order of their keys.
type walk struct {
	b             *Bucket
	ctx           context.Context
	prefix, after string
	limit         int
	out           []tiers.Object
}

// folder goes through one folder, whose keys start with base.
func (w *walk) folder(dir, base string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	list, err := fs.ReadDir(w.b.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// By key: a folder stands for keys that have a slash behind its name.
	names := make([]string, 0, len(list))
	for _, e := range list {
		switch {
		case base == "" && e.Name() == own:
		case e.IsDir():
			names = append(names, e.Name()+"/")
		case e.Type().IsRegular():
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if len(w.out) == w.limit {
			return nil
		}
		key := base + name
		if strings.HasSuffix(key, "/") {
			err = w.enter(key)
		} else {
			err = w.object(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter goes through a folder if it can hold a key that is wanted.
func (w *walk) enter(base string) error {
	if !strings.HasPrefix(base, w.prefix) && !strings.HasPrefix(w.prefix, base) ||
		base < w.after && !strings.HasPrefix(w.after, base) {
		return nil
	}
	return w.folder(path.Clean(base), base)
}

func (w *walk) object(key string) error {
	if !strings.HasPrefix(key, w.prefix) || key <= w.after {
		return nil
	}
	o, err := w.b.head(key)
	switch {
	case errors.Is(err, tiers.ErrNotFound):
		return nil
	case errors.Is(err, tiers.ErrCorrupt):
		info, err := lstatRegular(w.b.root, key)
		if err != nil {
			return nil
		}
		o = tiers.Object{Key: key, Bytes: max(0, info.Size()-trailerBytes)}
	case err != nil:
		return fmt.Errorf("%s: %w", key, err)
	}
	o.CRC, o.HasCRC = 0, false
	w.out = append(w.out, o)
	return nil
}
