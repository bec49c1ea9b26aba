package fakebucket

import (
	"context"
	"hash/crc32"
	"slices"
	"sort"
	"strconv"
	"strings"

	"varve/tiers"
)

type upload struct {
	key   string
	id    string
	parts []part // by number
}

type part struct {
	number int
	content
}

// Begin implements tiers.Bucket.
func (b *Bucket) Begin(_ context.Context, key string) (string, error) {
	if err := tiers.CheckKey(key); err != nil {
		return "", err
	}
	f := b.begin(OpBegin, key)
	if err := b.refuse(f); err != nil {
		return "", err
	}
	u := upload{key: key, id: b.name(b.begun)}
	if n := len(b.lists); n > 0 {
		u.parts = b.lists[n-1]
		b.lists = b.lists[:n-1]
	}
	b.begun++
	b.uploads = append(b.uploads, u)
	if err := b.answer(f, tiers.Condition{}, nil); err != nil {
		return "", err
	}
	return u.id, nil
}

// name returns the name of the n-th upload.
func (b *Bucket) name(n int) string {
	for len(b.names) <= n {
		b.names = append(b.names, "u"+strconv.Itoa(len(b.names)))
	}
	return b.names[n]
}

// findUpload returns where an upload is, -1 if it is not.
func (b *Bucket) findUpload(key, id string) int {
	for i := range b.uploads {
		if b.uploads[i].id == id && b.uploads[i].key == key {
			return i
		}
	}
	return -1
}

// forget takes an upload away.
func (b *Bucket) forget(i int) {
	u := &b.uploads[i]
	for j := range u.parts {
		b.free(&u.parts[j].content)
	}
	if u.parts != nil {
		b.lists = append(b.lists, u.parts[:0])
	}
	b.uploads = slices.Delete(b.uploads, i, i+1)
}

// PutPart implements tiers.Bucket.
func (b *Bucket) PutPart(_ context.Context, key, id string, number int, body []byte) (tiers.Part, error) {
	if err := tiers.CheckKey(key); err != nil {
		return tiers.Part{}, err
	}
	if err := tiers.CheckPart(number, len(body)); err != nil {
		return tiers.Part{}, err
	}
	f := b.begin(OpPart, key)
	if err := b.refuse(f); err != nil {
		return tiers.Part{}, err
	}
	b.abortedBefore(f, key, id)
	c := b.store(body)
	sent := tiers.Part{Number: number, Tag: c.tag, Bytes: int64(len(body)), CRC: c.crc}
	b.spoil(f, key, &c)
	if f == O3Late {
		return tiers.Part{}, b.later(change{op: OpPart, key: key, upload: id, number: number, content: c})
	}
	err := b.putPart(key, id, number, c)
	if err = b.answer(f, tiers.Condition{}, err); err != nil {
		return tiers.Part{}, err
	}
	return sent, nil
}

// abortedBefore lets somebody else abort the upload.
func (b *Bucket) abortedBefore(f Fault, key, id string) {
	if f == O7Gone && b.abort(key, id) {
		b.mark(f)
	}
}

// putPart owns the content.
func (b *Bucket) putPart(key, id string, number int, c content) error {
	i := b.findUpload(key, id)
	if i < 0 {
		b.free(&c)
		return tiers.ErrNoUpload
	}
	u := &b.uploads[i]
	j, ok := u.find(number)
	if ok {
		b.free(&u.parts[j].content)
		u.parts[j].content = c
		return nil
	}
	u.parts = slices.Insert(u.parts, j, part{number, c})
	return nil
}

// find returns where a part is, or belongs.
func (u *upload) find(number int) (int, bool) {
	j := 0
	for j < len(u.parts) && u.parts[j].number < number {
		j++
	}
	return j, j < len(u.parts) && u.parts[j].number == number
}

// Finish implements tiers.Bucket.
func (b *Bucket) Finish(_ context.Context, key, id string, parts []tiers.Part, cond tiers.Condition) (tiers.Object, error) {
	if err := tiers.CheckKey(key); err != nil {
		return tiers.Object{}, err
	}
	if err := cond.Check(); err != nil {
		return tiers.Object{}, err
	}
	f := b.begin(OpFinish, key)
	if err := b.refuse(f); err != nil {
		return tiers.Object{}, err
	}
	b.abortedBefore(f, key, id)
	if f == O7Missing {
		b.losePart(key, id)
	}
	if f == O3Late {
		return tiers.Object{}, b.later(change{op: OpFinish, key: key, upload: id, parts: append(b.order(), parts...), cond: cond})
	}
	o, err := b.finish(f, key, id, parts, cond)
	if err = b.answer(f, cond, err); err != nil {
		return tiers.Object{}, err
	}
	return o, nil
}

// losePart takes a part of an upload away that the client believes is there.
func (b *Bucket) losePart(key, id string) {
	i := b.findUpload(key, id)
	if i < 0 || len(b.uploads[i].parts) == 0 {
		return
	}
	u := &b.uploads[i]
	j := int(b.rand.Below(uint64(len(u.parts))))
	b.free(&u.parts[j].content)
	u.parts = slices.Delete(u.parts, j, j+1)
	b.mark(O7Missing)
}

// finish makes an object of parts.
func (b *Bucket) finish(f Fault, key, id string, parts []tiers.Part, cond tiers.Condition) (tiers.Object, error) {
	i := b.findUpload(key, id)
	if i < 0 {
		return tiers.Object{}, tiers.ErrNoUpload
	}
	u := &b.uploads[i]
	if err := b.checkParts(u, parts); err != nil {
		return tiers.Object{}, err
	}
	c := content{there: true, body: b.memory()}
	for k := range parts {
		j, _ := u.find(parts[k].Number)
		c.body = append(c.body, u.parts[j].body...)
	}
	c.crc = crc32.Checksum(c.body, castagnoli)
	c.real = c.crc
	c.tag = b.tag(&c, len(parts))
	b.spoil(f, key, &c)
	o, err := b.put(key, c, cond)
	if err == nil {
		b.forget(i)
	}
	return o, err
}

func (b *Bucket) checkParts(u *upload, parts []tiers.Part) error {
	if err := tiers.CheckParts(parts, b.params.PartBytesMin); err != nil {
		return err
	}
	for k := range parts {
		j, ok := u.find(parts[k].Number)
		switch {
		case !ok || u.parts[j].tag != parts[k].Tag:
			return errParts
		case k < len(parts)-1 && int64(len(u.parts[j].body)) < b.params.PartBytesMin:
			return errTooSmall // the client believes otherwise
		}
	}
	return nil
}

// Abort implements tiers.Bucket.
func (b *Bucket) Abort(_ context.Context, key, id string) error {
	if err := tiers.CheckKey(key); err != nil {
		return err
	}
	f := b.begin(OpAbort, key)
	if err := b.refuse(f); err != nil {
		return err
	}
	switch {
	case f == O3Late:
		return b.later(change{op: OpAbort, key: key, upload: id})
	case f == O7Orphan && b.findUpload(key, id) >= 0:
		b.mark(f)
		return nil
	}
	b.abort(key, id)
	return b.answer(f, tiers.Condition{}, nil)
}

// abort reports whether there was such an upload.
func (b *Bucket) abort(key, id string) bool {
	i := b.findUpload(key, id)
	if i >= 0 {
		b.forget(i)
	}
	return i >= 0
}

// Uploads implements tiers.Bucket.
func (b *Bucket) Uploads(_ context.Context, prefix string) ([]tiers.Upload, error) {
	if err := tiers.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if err := b.refuse(b.begin(OpUploads, prefix)); err != nil {
		return nil, err
	}
	var out []tiers.Upload
	for i := range b.uploads {
		if u := &b.uploads[i]; strings.HasPrefix(u.key, prefix) {
			out = append(out, tiers.Upload{Key: u.key, ID: u.id})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out[:min(len(out), tiers.PageMax)], nil
}
