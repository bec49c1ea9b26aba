package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"varve/tiers"
)

// Bucket is a tiers.Bucket in a bucket of an S3 server.
type Bucket struct {
	client  *s3.Client
	bucket  string
	prefix  string // with a slash at its end, or empty
	place   string // in messages
	sse     types.ServerSideEncryption
	kmsKey  *string
	timeout time.Duration
}

var _ tiers.Bucket = (*Bucket)(nil)

// Open makes a bucket ready. It asks the server nothing: Check does.
func Open(ctx context.Context, o Options) (*Bucket, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	client, err := o.client(ctx)
	if err != nil {
		return nil, err
	}
	b := &Bucket{
		client: client, bucket: o.Bucket, place: "s3://" + o.Bucket, timeout: o.Timeout,
		sse: types.ServerSideEncryption(o.SSE),
	}
	if o.Prefix != "" {
		b.prefix = o.Prefix + "/"
		b.place += "/" + o.Prefix
	}
	if o.Endpoint != "" {
		b.place += " at " + o.Endpoint
	}
	if o.KMSKey != "" {
		b.kmsKey = aws.String(o.KMSKey)
	}
	if b.timeout == 0 {
		b.timeout = TimeoutDefault
	}
	return b, nil
}

// full returns a key as the server has it.
func (b *Bucket) full(key string) (string, error) {
	if err := tiers.CheckKey(key); err != nil {
		return "", err
	}
	full := b.prefix + key
	if len(full) > tiers.KeyBytesMax {
		return "", fmt.Errorf("%w: with the prefix %s the key has %d bytes, more than %d", tiers.ErrInvalid, b.prefix, len(full), tiers.KeyBytesMax)
	}
	return full, nil
}

// conditions returns the two headers of a condition.
func conditions(c tiers.Condition) (match, none *string, err error) {
	if c.Absent {
		none = aws.String("*")
	}
	if c.Tag != "" {
		match = aws.String(c.Tag)
	}
	return match, none, c.Check()
}

// Put implements tiers.Bucket.
func (b *Bucket) Put(ctx context.Context, key string, p []byte, cond tiers.Condition) (tiers.Object, error) {
	o, err := b.put(ctx, key, p, cond)
	return o, b.fail("put", key, err)
}

func (b *Bucket) put(ctx context.Context, key string, p []byte, cond tiers.Condition) (o tiers.Object, err error) {
	full, err := b.full(key)
	if err != nil {
		return o, err
	}
	match, none, err := conditions(cond)
	if err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	sum := crc32.Checksum(p, castagnoli)
	out, err := b.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &b.bucket, Key: &full, Body: bytes.NewReader(p), // which the SDK lets go of before it returns
		ContentLength:  aws.Int64(int64(len(p))),
		ContentType:    aws.String("application/octet-stream"),
		ChecksumCRC32C: aws.String(encodeCRC(sum)), IfMatch: match, IfNoneMatch: none,
		ServerSideEncryption: b.sse, SSEKMSKeyId: b.kmsKey,
	}, s3.WithAPIOptions(unsigned))
	if err != nil {
		return o, err
	}
	return b.stored(key, out.ETag, int64(len(p)), sum, out.ChecksumCRC32C, out.ChecksumType)
}

// unsigned leaves a body out of the signature, over plain HTTP as the SDK does by itself over TLS: what
// protects it is the CRC32C, which is signed, and a SHA-256 of every body costs both ends more than the
// rest of a put.
func unsigned(s *middleware.Stack) error {
	return v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware(s)
}

// stored describes an object that was just put, if the server took it for the same bytes.
func (b *Bucket) stored(key string, tag *string, size int64, sum uint32, crc *string, kind types.ChecksumType) (tiers.Object, error) {
	o := tiers.Object{Key: key, Tag: aws.ToString(tag), Bytes: size}
	if o.Tag == "" {
		return tiers.Object{}, errors.New("the answer has no ETag: use a server that sends one")
	}
	o.CRC, o.HasCRC = decodeCRC(crc, kind)
	if o.HasCRC && o.CRC != sum {
		return tiers.Object{}, fmt.Errorf("the server says the CRC32C %08x, the bytes sent have %08x: put it again", o.CRC, sum)
	}
	return o, nil
}

// Get implements tiers.Bucket.
func (b *Bucket) Get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	n, o, err := b.get(ctx, key, pos, p)
	if err != nil {
		return 0, tiers.Object{}, b.fail("get", key, err)
	}
	return n, o, nil
}

func (b *Bucket) get(ctx context.Context, key string, pos int64, p []byte) (int, tiers.Object, error) {
	full, err := b.full(key)
	if err == nil && pos < 0 {
		err = fmt.Errorf("%w: position %d", tiers.ErrInvalid, pos)
	}
	if err != nil {
		return 0, tiers.Object{}, err
	}
	if len(p) == 0 {
		o, err := b.head(ctx, key)
		return 0, o, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &b.bucket, Key: &full, Range: aws.String(fmt.Sprintf("bytes=%d-%d", pos, pos+int64(len(p))-1)),
	}, s3.WithAPIOptions(smithyhttp.SetHeaderValue("x-amz-checksum-mode", "ENABLED")))
	if beyond(err) {
		return b.beyondEnd(ctx, key, pos)
	}
	if err != nil {
		return 0, tiers.Object{}, err
	}
	defer func() { _ = out.Body.Close() }()
	n, o, err := b.answered(key, pos, len(p), out)
	if err != nil {
		return 0, tiers.Object{}, err
	}
	if _, err := io.ReadFull(out.Body, p[:n]); err != nil {
		return 0, tiers.Object{}, fmt.Errorf("the body is shorter than the %d bytes that it should have: %w", n, err)
	}
	var more [1]byte
	if m, err := io.ReadFull(out.Body, more[:]); m != 0 || !errors.Is(err, io.EOF) {
		return 0, tiers.Object{}, fmt.Errorf("the body is longer than the %d bytes that it should have, or does not end: %w", n, err)
	}
	if o.HasCRC && int64(n) == o.Bytes && crc32.Checksum(p[:n], castagnoli) != o.CRC {
		return 0, tiers.Object{}, fmt.Errorf("%w: CRC32C %08x, the server says %08x", tiers.ErrCorrupt, crc32.Checksum(p[:n], castagnoli), o.CRC)
	}
	return n, o, nil
}

// beyond reports whether an answer says that the range lies beyond the object.
func beyond(err error) bool {
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && answer.HTTPStatusCode() == 416
}

// beyondEnd describes an object that ends at or before a position.
func (b *Bucket) beyondEnd(ctx context.Context, key string, pos int64) (int, tiers.Object, error) {
	o, err := b.head(ctx, key)
	if err == nil && o.Bytes > pos {
		err = fmt.Errorf("the server has no range at %d, and says that the object has %d bytes: it was replaced meanwhile: get it again", pos, o.Bytes)
	}
	return 0, o, err
}

// answered checks what the head of an answer says about its body against the range that was asked
// for, and returns how many bytes the body must have.
func (b *Bucket) answered(key string, pos int64, asked int, out *s3.GetObjectOutput) (int, tiers.Object, error) {
	o := tiers.Object{Key: key, Tag: aws.ToString(out.ETag)}
	o.CRC, o.HasCRC = decodeCRC(out.ChecksumCRC32C, out.ChecksumType)
	if o.Tag == "" || out.ContentLength == nil || *out.ContentLength < 0 {
		return 0, o, errors.New("the answer has no ETag or no length: use a server that sends both")
	}
	length := *out.ContentLength
	if out.ContentRange == nil {
		// The whole object, which is right only where just that was asked for.
		if pos != 0 || length > int64(asked) {
			return 0, o, fmt.Errorf("asked for %d bytes at %d, the server sends the whole object of %d: use a server that knows ranges", asked, pos, length)
		}
		o.Bytes = length
		return int(length), o, nil
	}
	first, last, total, ok := parseRange(*out.ContentRange)
	if !ok || first != pos || last != min(pos+int64(asked), total)-1 || length != last-first+1 {
		return 0, o, fmt.Errorf("asked for %d bytes at %d, the server answers with the range %.60q of %d bytes", asked, pos, *out.ContentRange, length)
	}
	o.Bytes = total
	return int(length), o, nil
}

// parseRange reads "bytes 0-99/1000".
func parseRange(text string) (first, last, total int64, ok bool) {
	rest, ok1 := strings.CutPrefix(text, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	from, to, ok3 := strings.Cut(span, "-")
	if !ok1 || !ok2 || !ok3 {
		return 0, 0, 0, false
	}
	var errs [3]error
	first, errs[0] = strconv.ParseInt(from, 10, 64)
	last, errs[1] = strconv.ParseInt(to, 10, 64)
	total, errs[2] = strconv.ParseInt(size, 10, 64)
	return first, last, total, errors.Join(errs[:]...) == nil && 0 <= first && first <= last && last < total
}

// Head implements tiers.Bucket.
func (b *Bucket) Head(ctx context.Context, key string) (tiers.Object, error) {
	o, err := b.head(ctx, key)
	return o, b.fail("head", key, err)
}

func (b *Bucket) head(ctx context.Context, key string) (o tiers.Object, err error) {
	full, err := b.full(key)
	if err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	out, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: &b.bucket, Key: &full, ChecksumMode: types.ChecksumModeEnabled,
	})
	if err != nil {
		return o, err
	}
	if out.ETag == nil || out.ContentLength == nil {
		return o, errors.New("the answer has no ETag or no length: use a server that sends both")
	}
	o = tiers.Object{Key: key, Tag: *out.ETag, Bytes: *out.ContentLength}
	o.CRC, o.HasCRC = decodeCRC(out.ChecksumCRC32C, out.ChecksumType)
	return o, nil
}

// Delete implements tiers.Bucket.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	full, err := b.full(key)
	if err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.timeout)
		defer cancel()
		_, err = b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.bucket, Key: &full})
	}
	if _, kind := kindOf(err); errors.Is(kind, tiers.ErrNotFound) {
		err = nil // some servers say so
	}
	return b.fail("delete", key, err)
}
