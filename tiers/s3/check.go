package s3

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"varve/tiers"
)

// probe is the name that the keys of Check start with.
const probe = "varve-probe-"

// cleanTimeout bounds what Check does to remove its objects after its context has ended.
const cleanTimeout = 10 * time.Second

// Check proves, with small objects that it removes again, that the bucket can be written to, read and
// deleted from with these credentials, and that it honours conditions: a server that ignores them lets
// two writers both win.
func (b *Bucket) Check(ctx context.Context) error {
	if err := check(ctx, b); err != nil {
		return fmt.Errorf("s3: check %s: %w", b.place, err)
	}
	return nil
}

func check(ctx context.Context, b tiers.Bucket) (err error) {
	var draw [16]byte
	_, _ = rand.Read(draw[:]) // never fails
	key := probe + hex.EncodeToString(draw[:])
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		if gone := b.Delete(ctx, key); err == nil {
			err = gone
		}
	}()
	first, err := b.Put(ctx, key, []byte("first"), tiers.Condition{Absent: true})
	if err != nil {
		return err
	}
	_, err = b.Put(ctx, key, []byte("second"), tiers.Condition{Absent: true})
	if err := refused(err, "a put with If-None-Match: *"); err != nil {
		return err
	}
	second, err := b.Put(ctx, key, []byte("second"), tiers.Condition{Tag: first.Tag})
	if err != nil {
		return fmt.Errorf("a put with If-Match of the object's own tag: %w", err)
	}
	_, err = b.Put(ctx, key, []byte("third"), tiers.Condition{Tag: first.Tag})
	if err := refused(err, "a put with If-Match"); err != nil {
		return err
	}
	if err := checkFinish(ctx, b, key); err != nil {
		return err
	}
	var p [8]byte
	n, o, err := b.Get(ctx, key, 0, p[:])
	if err == nil && (string(p[:n]) != "second" || o.Tag != second.Tag) {
		err = fmt.Errorf("the object reads as %q with tag %s, put was %q with tag %s", p[:n], o.Tag, "second", second.Tag)
	}
	return err
}

// checkFinish tries to replace an object by an upload that wants it absent.
func checkFinish(ctx context.Context, b tiers.Bucket, key string) error {
	id, err := b.Begin(ctx, key)
	if err != nil {
		return err
	}
	part, err := b.PutPart(ctx, key, id, 1, []byte("third"))
	if err == nil {
		_, err = b.Finish(ctx, key, id, []tiers.Part{part}, tiers.Condition{Absent: true})
		err = refused(err, "the end of an upload with If-None-Match: *")
	}
	return errors.Join(err, b.Abort(ctx, key, id))
}

// refused wants a conditional write to have been refused.
func refused(err error, what string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s replaced an object: this server does not honour conditional writes, so two writers could both win: use one that does", what)
	case errors.Is(err, tiers.ErrPrecondition) || errors.Is(err, tiers.ErrConflict):
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
