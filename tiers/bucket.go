package tiers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of every bucket. They are S3's; a bucket may not allow more.
const (
	PartBytesMin = 5 << 20 // of every part but the last
	PartsMax     = 10_000  // of one upload
	PageMax      = 1000    // objects or uploads in one answer
	KeyBytesMax  = 1024    // of a key
	NameBytesMax = 255     // of what stands between two slashes of a key
)

// Errors of a bucket. All but ErrPrecondition, ErrThrottled and ErrCorrupt promise that the call had
// no effect and will have none. Every other error leaves the effect of a call that changes something
// unknown: it may have happened, it may still happen later. ErrPrecondition says what the bucket holds,
// and that may be the work of this very call, where something on the way sent it twice: look before
// you conclude that it was somebody else's.
var (
	ErrNotFound     = errors.New("no such object")
	ErrNoUpload     = errors.New("no such upload") // never begun, finished or aborted
	ErrPrecondition = errors.New("the condition does not hold")
	ErrConflict     = errors.New("another call to the same key is under way") // try again
	ErrDenied       = errors.New("access denied")
	ErrInvalid      = errors.New("the bucket rejects the request") // key, part list, size, checksum: the same call fails again
	ErrThrottled    = errors.New("the bucket asks for fewer requests")
	ErrCorrupt      = errors.New("the object is damaged") // of Get: the bytes are not those that were put
)

// Bucket is an object store as far as a log needs one. It is safe for concurrent use. No call keeps
// or reads a slice that it was given after it returned. A change that was answered without an error
// is durable and seen by every later call of every client.
type Bucket interface {
	// Put stores an object, whole or not at all.
	Put(ctx context.Context, key string, body []byte, cond Condition) (Object, error)
	// Begin starts an upload in parts. It names it; nothing is seen under the key before Finish.
	Begin(ctx context.Context, key string) (upload string, err error)
	// PutPart stores one part, number 1 to PartsMax, of at least a byte. A later part of the same number replaces it.
	PutPart(ctx context.Context, key, upload string, number int, body []byte) (Part, error)
	// Finish makes the object of the parts given, which must be all as PutPart returned them, by
	// rising number. All but the last must have at least PartBytesMin. The upload is gone then: the same
	// call again fails, or, as long as the object is the one that it made, answers the same.
	// After ErrInvalid, ErrPrecondition and ErrConflict the upload may be gone or not: Abort it.
	Finish(ctx context.Context, key, upload string, parts []Part, cond Condition) (Object, error)
	// Abort forgets an upload and its parts. Where there is no such upload: nil.
	Abort(ctx context.Context, key, upload string) error
	// Get reads len(p) bytes from a position on. It returns fewer only where the object ends, then
	// with a nil error; a position at or beyond the end gives 0. A body that is shorter or another
	// range than asked is an error. Object is the one that was read.
	Get(ctx context.Context, key string, pos int64, p []byte) (n int, o Object, err error)
	// Head describes an object.
	Head(ctx context.Context, key string) (Object, error)
	// Delete removes an object. Where there is none: nil.
	Delete(ctx context.Context, key string) error
	// List returns the objects whose keys start with prefix and are greater than after, by key, without
	// CRC. It returns fewer than limit, which is 1 to PageMax, only where there are no more.
	List(ctx context.Context, prefix, after string, limit int) ([]Object, error)
	// Uploads returns uploads that were begun and neither finished nor aborted, of keys that start
	// with prefix, by key: all, or the first PageMax. Abort some to see more.
	Uploads(ctx context.Context, prefix string) ([]Upload, error)
}

// Condition is what must hold for Put or Finish to have an effect. It is decided at one instant with
// the effect: of two calls with Absent one succeeds at most. The zero value is always true.
type Condition struct {
	Absent bool   // there is no object with the key; else ErrPrecondition
	Tag    string // the object with the key has this tag; else ErrPrecondition, without object ErrNotFound
}

// Check reports a condition that no object can meet. The error is an ErrInvalid.
func (c Condition) Check() error {
	if c.Absent && c.Tag != "" {
		return fmt.Errorf("%w: a condition wants the object absent and tagged %.80q: ask for one", ErrInvalid, c.Tag)
	}
	return nil
}

// Object describes an object. Tag identifies its content: it differs where the content differs, and
// may be equal for an object that was replaced by equal bytes.
type Object struct {
	Key    string
	Tag    string
	Bytes  int64
	CRC    uint32 // CRC32C of the whole object, where HasCRC
	HasCRC bool
}

// Part describes a part of an upload.
type Part struct {
	Number int
	Tag    string
	Bytes  int64
	CRC    uint32 // CRC32C
}

// Upload names an upload in parts.
type Upload struct {
	Key string
	ID  string
}

// CheckPart reports a part that no upload takes. The error is an ErrInvalid.
func CheckPart(number, size int) error {
	if number < 1 || number > PartsMax || size == 0 {
		return fmt.Errorf("%w: part %d of %d bytes: parts have the numbers 1 to %d, and at least a byte", ErrInvalid, number, size, PartsMax)
	}
	return nil
}

// CheckParts reports a list of parts that makes no object, as far as the list tells. All but the last
// part must have at least so many bytes. The error is an ErrInvalid.
func CheckParts(parts []Part, least int64) error {
	if len(parts) == 0 {
		return fmt.Errorf("%w: no parts: an object has at least one", ErrInvalid)
	}
	for i := range parts {
		switch p := &parts[i]; {
		case p.Number < 1 || p.Number > PartsMax || i > 0 && p.Number <= parts[i-1].Number:
			return fmt.Errorf("%w: part number %d at place %d: numbers rise, from 1 to %d", ErrInvalid, p.Number, i, PartsMax)
		case i < len(parts)-1 && p.Bytes < least:
			return fmt.Errorf("%w: part %d has %d bytes: all but the last have at least %d", ErrInvalid, p.Number, p.Bytes, least)
		}
	}
	return nil
}

// CheckKey reports what makes a key unfit. A key is made of names with one slash between two. No fit
// key leads out of the folder or prefix that a bucket puts it under. The error is an ErrInvalid.
func CheckKey(key string) error {
	if key == "" || len(key) > KeyBytesMax {
		return fmt.Errorf("%w: a key has 1 to %d bytes, this one %d: name it otherwise", ErrInvalid, KeyBytesMax, len(key))
	}
	for rest, more := key, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		if err := CheckName(name); err != nil {
			return fmt.Errorf("key %.80q: %w", key, err)
		}
	}
	return nil
}

// CheckPrefix reports what makes a prefix of keys unfit: it is empty, or a key that may end in a slash.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return CheckKey(strings.TrimSuffix(prefix, "/"))
}

// Kinds of bytes that not every name may have.
const (
	slash   = 1 << iota // or backslash
	control             // character
	wide                // of a rune that has more than one
)

var byteKinds = func() (kinds [256]uint8) {
	for c := range kinds {
		switch {
		case c == '/' || c == '\\':
			kinds[c] = slash
		case c < ' ' || c == 0x7f:
			kinds[c] = control
		case c >= utf8.RuneSelf:
			kinds[c] = wide
		}
	}
	return kinds
}()

// CheckName reports what makes one name of a key unfit. The error is an ErrInvalid.
func CheckName(name string) error {
	var kinds uint8
	for i := range len(name) {
		kinds |= byteKinds[name[i]]
	}
	fault := ""
	switch {
	case name == "":
		fault = "is empty"
	case len(name) > NameBytesMax:
		fault = fmt.Sprintf("has %d bytes, more than %d", len(name), NameBytesMax)
	case name == "." || name == "..":
		fault = "leads elsewhere"
	case kinds&slash != 0:
		fault = "has a slash or backslash"
	case kinds&wide != 0 && !utf8.ValidString(name):
		fault = "is not UTF-8"
	case kinds&control != 0:
		fault = "has a control character"
	}
	if fault == "" {
		return nil
	}
	return fmt.Errorf("%w: the name %.80q %s: use letters, digits, '-', '_' and '.'", ErrInvalid, name, fault)
}
