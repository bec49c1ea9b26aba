package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"varve/tiers"
)

// Begin implements tiers.Bucket.
func (b *Bucket) Begin(ctx context.Context, key string) (string, error) {
	id, err := b.begin(ctx, key)
	return id, b.fail("begin an upload of", key, err)
}

func (b *Bucket) begin(ctx context.Context, key string) (string, error) {
	full, err := b.full(key)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	out, err := b.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.bucket, Key: &full, ContentType: aws.String("application/octet-stream"),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32c, ChecksumType: types.ChecksumTypeFullObject,
		ServerSideEncryption: b.sse, SSEKMSKeyId: b.kmsKey,
	})
	if err != nil {
		return "", err
	}
	if aws.ToString(out.UploadId) == "" {
		return "", errors.New("the answer has no upload id")
	}
	return *out.UploadId, nil
}

// PutPart implements tiers.Bucket.
func (b *Bucket) PutPart(ctx context.Context, key, upload string, number int, p []byte) (tiers.Part, error) {
	x, err := b.putPart(ctx, key, upload, number, p)
	return x, b.fail(fmt.Sprintf("put part %d of", number), key, err)
}

func (b *Bucket) putPart(ctx context.Context, key, upload string, number int, p []byte) (part tiers.Part, err error) {
	full, err := b.full(key)
	if err != nil {
		return part, err
	}
	if err := tiers.CheckPart(number, len(p)); err != nil {
		return part, err
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	sum := crc32.Checksum(p, castagnoli)
	out, err := b.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &b.bucket, Key: &full, UploadId: &upload, PartNumber: aws.Int32(int32(number)),
		Body: bytes.NewReader(p), ContentLength: aws.Int64(int64(len(p))), ChecksumCRC32C: aws.String(encodeCRC(sum)),
	}, s3.WithAPIOptions(unsigned))
	if err != nil {
		return part, err
	}
	o, err := b.stored(key, out.ETag, int64(len(p)), sum, out.ChecksumCRC32C, types.ChecksumTypeFullObject)
	if err != nil {
		return part, err
	}
	return tiers.Part{Number: number, Tag: o.Tag, Bytes: o.Bytes, CRC: sum}, nil
}

// Finish implements tiers.Bucket.
func (b *Bucket) Finish(ctx context.Context, key, upload string, parts []tiers.Part, cond tiers.Condition) (tiers.Object, error) {
	o, err := b.finish(ctx, key, upload, parts, cond)
	return o, b.fail("finish the upload of", key, err)
}

func (b *Bucket) finish(ctx context.Context, key, upload string, parts []tiers.Part, cond tiers.Condition) (o tiers.Object, err error) {
	full, err := b.full(key)
	if err != nil {
		return o, err
	}
	match, none, err := conditions(cond)
	if err != nil {
		return o, err
	}
	if err := tiers.CheckParts(parts, tiers.PartBytesMin); err != nil {
		return o, err
	}
	list := make([]types.CompletedPart, len(parts))
	sum, size := uint32(0), int64(0)
	for i, p := range parts {
		list[i] = types.CompletedPart{
			ETag: aws.String(p.Tag), PartNumber: aws.Int32(int32(p.Number)), ChecksumCRC32C: aws.String(encodeCRC(p.CRC)),
		}
		sum, size = tiers.CombineCRC(sum, p.CRC, p.Bytes), size+p.Bytes
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	out, err := b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &b.bucket, Key: &full, UploadId: &upload,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: list},
		ChecksumCRC32C:  aws.String(encodeCRC(sum)), ChecksumType: types.ChecksumTypeFullObject,
		MpuObjectSize: aws.Int64(size), IfMatch: match, IfNoneMatch: none,
	})
	if err != nil {
		return o, err
	}
	if o, err = b.stored(key, out.ETag, size, sum, out.ChecksumCRC32C, out.ChecksumType); err == nil && !o.HasCRC {
		return b.finished(ctx, key, o, sum)
	}
	return o, err
}

// finished looks whether an upload that was answered without a checksum made the object. There are
// servers that answer for an upload that is gone as if they had just finished it, from the request
// alone, as long as there is some object under the key.
func (b *Bucket) finished(ctx context.Context, key string, o tiers.Object, sum uint32) (tiers.Object, error) {
	head, err := b.head(ctx, key)
	switch {
	case err != nil:
		// Not wrapped: what the error says of Head it does not promise for the upload.
		return tiers.Object{}, errors.New("the server says it is finished, but a look at the object fails: " + err.Error())
	case head.Tag != o.Tag || head.Bytes != o.Bytes || head.HasCRC && head.CRC != sum:
		return tiers.Object{}, fmt.Errorf("the server says that it is finished, with tag %s and %d bytes, but the object has %s and %d: the upload was gone, or another replaced it",
			o.Tag, o.Bytes, head.Tag, head.Bytes)
	}
	return head, nil
}

// Abort implements tiers.Bucket.
func (b *Bucket) Abort(ctx context.Context, key, upload string) error {
	full, err := b.full(key)
	if err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.timeout)
		defer cancel()
		_, err = b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &b.bucket, Key: &full, UploadId: &upload})
	}
	if _, kind := kindOf(err); errors.Is(kind, tiers.ErrNoUpload) {
		err = nil
	}
	return b.fail("abort the upload of", key, err)
}

// Uploads implements tiers.Bucket.
func (b *Bucket) Uploads(ctx context.Context, prefix string) ([]tiers.Upload, error) {
	out, err := b.uploads(ctx, prefix)
	return out, b.fail("list the uploads of", prefix, err)
}

func (b *Bucket) uploads(ctx context.Context, prefix string) ([]tiers.Upload, error) {
	if err := tiers.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	var out []tiers.Upload
	in := &s3.ListMultipartUploadsInput{Bucket: &b.bucket, Prefix: aws.String(b.prefix + prefix)}
	for range pagesMax {
		page, err := b.uploadsPage(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range page.Uploads {
			key, ours := strings.CutPrefix(aws.ToString(page.Uploads[i].Key), b.prefix)
			if !ours || !strings.HasPrefix(key, prefix) {
				return nil, fmt.Errorf("asked for uploads of keys that start with %q, the server sends %.80q", prefix, key)
			}
			if tiers.CheckKey(key) == nil {
				out = append(out, tiers.Upload{Key: key, ID: aws.ToString(page.Uploads[i].UploadId)})
			}
		}
		if len(out) >= tiers.PageMax || !aws.ToBool(page.IsTruncated) {
			sort.SliceStable(out, func(i, j int) bool { return out[i].Key < out[j].Key })
			return out[:min(len(out), tiers.PageMax)], nil
		}
		in.KeyMarker, in.UploadIdMarker = page.NextKeyMarker, page.NextUploadIdMarker
	}
	return nil, fmt.Errorf("the list does not end after %d pages", pagesMax)
}

func (b *Bucket) uploadsPage(ctx context.Context, in *s3.ListMultipartUploadsInput) (*s3.ListMultipartUploadsOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return b.client.ListMultipartUploads(ctx, in)
}
