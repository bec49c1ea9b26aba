package dirbucket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"sort"

	"varve/tiers"
)

// keyFile holds the key in the folder of an upload. A part's file has five digits.
const keyFile = "key"

// Begin implements tiers.Bucket.
func (b *Bucket) Begin(ctx context.Context, key string) (string, error) {
	if err := b.check(ctx, key); err != nil {
		return "", b.fail("begin an upload of", key, err)
	}
	var draw [16]byte
	_, _ = rand.Read(draw[:]) // never fails
	id := hex.EncodeToString(draw[:])
	err := b.change(ctx, path.Join(uploadsDir, id), func() error { return nil }, func() (string, error) {
		// Made in tmp, so that every folder in uploads has a key.
		tmp := path.Join(tmpDir, id)
		if err := b.root.Mkdir(tmp, dirMode); err != nil {
			return "", err
		}
		err := writeSmall(b.root, path.Join(tmp, keyFile), key, true)
		if err == nil {
			err = b.root.Rename(tmp, path.Join(uploadsDir, id))
		}
		if err != nil {
			return "", errors.Join(err, b.root.RemoveAll(tmp))
		}
		return uploadsDir, nil
	})
	if err != nil {
		return "", b.fail("begin an upload of", key, err)
	}
	return id, nil
}

// PutPart implements tiers.Bucket.
func (b *Bucket) PutPart(ctx context.Context, key, upload string, number int, body []byte) (tiers.Part, error) {
	x, err := b.putPart(ctx, key, upload, number, body)
	if err != nil {
		return tiers.Part{}, b.fail(fmt.Sprintf("put part %d of", number), key, err)
	}
	return tiers.Part{Number: number, Tag: x.tag(), Bytes: x.bytes, CRC: x.crc}, nil
}

func (b *Bucket) putPart(ctx context.Context, key, upload string, number int, body []byte) (trailer, error) {
	if err := tiers.CheckPart(number, len(body)); err != nil {
		return trailer{}, err
	}
	if err := b.check(ctx, key); err != nil {
		return trailer{}, err
	}
	if err := b.begun(key, upload); err != nil {
		return trailer{}, err
	}
	name := partName(upload, number)
	t, err := b.newTmp(name)
	if err != nil {
		return trailer{}, err
	}
	defer t.remove()
	if _, err = t.Write(body); err == nil {
		err = t.finish()
	}
	if err != nil {
		return trailer{}, err
	}
	begun := func() error { return b.begun(key, upload) }
	err = b.change(ctx, path.Dir(name), begun, func() (string, error) { return path.Dir(name), t.rename(name) })
	return t.trailer, err
}

func partName(upload string, number int) string {
	return fmt.Sprintf("%s/%s/%05d", uploadsDir, upload, number)
}

// begun reports whether an upload goes on, and is one of the key.
func (b *Bucket) begun(key, upload string) error {
	if _, err := hex.DecodeString(upload); err != nil || len(upload) != 32 {
		return fmt.Errorf("%w: %.40q", tiers.ErrNoUpload, upload)
	}
	text, err := readSmall(b.root, path.Join(uploadsDir, upload, keyFile))
	if errors.Is(err, tiers.ErrNotFound) || err == nil && text != key {
		return fmt.Errorf("%w: %s", tiers.ErrNoUpload, upload)
	}
	return err
}

// Finish implements tiers.Bucket.
func (b *Bucket) Finish(ctx context.Context, key, upload string, parts []tiers.Part, cond tiers.Condition) (tiers.Object, error) {
	t, err := b.finish(ctx, key, upload, parts, cond)
	if err != nil {
		return tiers.Object{}, b.fail("finish the upload of", key, err)
	}
	return t.object(key), nil
}

func (b *Bucket) finish(ctx context.Context, key, upload string, parts []tiers.Part, cond tiers.Condition) (trailer, error) {
	if err := b.check(ctx, key); err != nil {
		return trailer{}, err
	}
	if err := b.begun(key, upload); err != nil {
		return trailer{}, err
	}
	if err := cond.Check(); err != nil {
		return trailer{}, err
	}
	if err := tiers.CheckParts(parts, tiers.PartBytesMin); err != nil {
		return trailer{}, err
	}
	t, err := b.newTmp(key)
	if err != nil {
		return trailer{}, err
	}
	defer t.remove()
	for i := range parts {
		if err := b.copyPart(ctx, t, upload, parts[i]); err != nil {
			return trailer{}, err
		}
	}
	if err := t.finish(); err != nil {
		return trailer{}, err
	}
	if err := b.place(ctx, t, key, cond, func() error { return b.begun(key, upload) }); err != nil {
		return trailer{}, err
	}
	// The object is there. An upload that cannot be removed now is listed, and can be aborted.
	_ = b.forget(ctx, upload, nil)
	return t.trailer, nil
}

// copyPart appends a part to the object, checked.
func (b *Bucket) copyPart(ctx context.Context, t *tmp, upload string, part tiers.Part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, x, err := b.open(partName(upload, part.Number))
	if errors.Is(err, tiers.ErrNotFound) {
		return fmt.Errorf("%w: part %d is missing: put it again", tiers.ErrInvalid, part.Number)
	}
	if err != nil {
		return fmt.Errorf("part %d: %w", part.Number, err)
	}
	defer func() { _ = f.Close() }()
	if x.tag() != part.Tag {
		return fmt.Errorf("%w: part %d is %s, not %s: put it again", tiers.ErrInvalid, part.Number, x.tag(), part.Tag)
	}
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(io.MultiWriter(t, sum), io.LimitReader(f, x.bytes)); err != nil {
		return fmt.Errorf("part %d: %w", part.Number, err)
	}
	if sum.Sum32() != x.crc {
		return fmt.Errorf("%w: part %d is damaged: put it again", tiers.ErrInvalid, part.Number)
	}
	return nil
}

// Abort implements tiers.Bucket.
func (b *Bucket) Abort(ctx context.Context, key, upload string) error {
	err := b.check(ctx, key)
	if err == nil {
		err = b.forget(ctx, upload, func() error { return b.begun(key, upload) })
	}
	if errors.Is(err, tiers.ErrNoUpload) {
		err = nil
	}
	return b.fail("abort the upload of", key, err)
}

// forget takes an upload away: out of uploads at one instant, then file by file.
func (b *Bucket) forget(ctx context.Context, upload string, allowed func() error) error {
	if allowed == nil {
		allowed = func() error { return nil }
	}
	tmp := path.Join(tmpDir, upload)
	err := b.change(ctx, uploadsDir, allowed, func() (string, error) {
		return uploadsDir, b.root.Rename(path.Join(uploadsDir, upload), tmp)
	})
	if err == nil {
		_ = b.root.RemoveAll(tmp) // what stays is found by sweep
	}
	return err
}

// Uploads implements tiers.Bucket.
func (b *Bucket) Uploads(ctx context.Context, prefix string) ([]tiers.Upload, error) {
	out, err := b.uploads(ctx, prefix)
	return out, b.fail("list the uploads of", prefix, err)
}

func (b *Bucket) uploads(ctx context.Context, prefix string) ([]tiers.Upload, error) {
	if err := errors.Join(tiers.CheckPrefix(prefix), b.usable(ctx)); err != nil {
		return nil, err
	}
	list, err := fs.ReadDir(b.root.FS(), uploadsDir)
	if err != nil {
		return nil, err
	}
	var out []tiers.Upload
	for _, e := range list {
		key, err := readSmall(b.root, path.Join(uploadsDir, e.Name(), keyFile))
		if errors.Is(err, tiers.ErrNotFound) { // gone meanwhile, or foreign
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
			out = append(out, tiers.Upload{Key: key, ID: e.Name()})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out[:min(len(out), tiers.PageMax)], b.settle(ctx)
}
