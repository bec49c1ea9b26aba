package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"varve/tiers"
)

// pagesMax bounds the requests of one list: a server may send pages that hold little.
const pagesMax = 1000

// List implements tiers.Bucket. Objects with keys that no log writes are passed over.
func (b *Bucket) List(ctx context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	out, err := b.list(ctx, prefix, after, limit)
	return out, b.fail("list", prefix, err)
}

func (b *Bucket) list(ctx context.Context, prefix, after string, limit int) ([]tiers.Object, error) {
	if err := tiers.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	if limit < 1 || limit > tiers.PageMax {
		return nil, fmt.Errorf("%w: a limit of %d: want 1 to %d", tiers.ErrInvalid, limit, tiers.PageMax)
	}
	var out []tiers.Object
	in := &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: aws.String(b.prefix + prefix)}
	if after != "" {
		in.StartAfter = aws.String(b.prefix + after)
	}
	for range pagesMax {
		in.MaxKeys = aws.Int32(int32(limit - len(out)))
		page, err := b.page(ctx, in)
		if err != nil {
			return nil, err
		}
		for i := range page.Contents {
			o, ok, err := b.listed(&page.Contents[i], prefix, after)
			if err != nil {
				return nil, err
			}
			if ok {
				after = o.Key
				out = append(out, o)
			}
		}
		if len(out) > limit {
			return nil, fmt.Errorf("asked for %d objects, the server sends %d", limit, len(out))
		}
		if len(out) == limit || !aws.ToBool(page.IsTruncated) {
			return out, nil
		}
		if page.NextContinuationToken == nil {
			return nil, errors.New("there are more objects, and the server does not say how to go on")
		}
		in.ContinuationToken = page.NextContinuationToken
	}
	return nil, fmt.Errorf("the list does not end after %d pages", pagesMax)
}

func (b *Bucket) page(ctx context.Context, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	return b.client.ListObjectsV2(ctx, in)
}

// listed checks one object of a list, and says whether it can be one of a log.
func (b *Bucket) listed(x *types.Object, prefix, after string) (o tiers.Object, ok bool, err error) {
	key, ours := strings.CutPrefix(aws.ToString(x.Key), b.prefix)
	if !ours || !strings.HasPrefix(key, prefix) || key <= after && after != "" {
		return o, false, fmt.Errorf("asked for keys that start with %q and come after %q, the server sends %.80q", prefix, after, aws.ToString(x.Key))
	}
	if tiers.CheckKey(key) != nil {
		return o, false, nil
	}
	if x.ETag == nil || x.Size == nil {
		return o, false, fmt.Errorf("the list has no ETag or no size for %s", key)
	}
	return tiers.Object{Key: key, Tag: *x.ETag, Bytes: *x.Size}, true, nil
}
