package s3

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"varve/tiers"
)

// TimeoutDefault bounds a call where Options.Timeout is 0.
const TimeoutDefault = time.Minute

// Options says where a bucket is. Region, and the credentials where AccessKey is empty, come from the
// SDK's default chain: environment, shared files, the machine's role.
type Options struct {
	Bucket    string
	Prefix    string // of all keys, without a slash at its end; may be empty
	Endpoint  string // http://host:port of a server that is not AWS
	Region    string
	PathStyle bool // http://host/bucket instead of http://bucket.host

	AccessKey, SecretKey, SessionToken string

	SSE    string // AES256, aws:kms, aws:kms:dsse, or empty: what the bucket does by itself
	KMSKey string // with aws:kms; empty is the account's own

	Timeout    time.Duration // of one call
	HTTPClient HTTPClient    // nil is the SDK's
}

// HTTPClient sends requests. It must not send one again.
type HTTPClient = s3.HTTPClient

// ParseURL splits s3://bucket/prefix.
func ParseURL(text string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(text, "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.TrimSuffix(prefix, "/")
	if !ok || bucket == "" || strings.ContainsAny(text, "?#") {
		return "", "", fmt.Errorf("s3: bad URL %.80q: want s3://bucket/prefix", text)
	}
	return bucket, prefix, checkPlace(bucket, prefix)
}

func checkPlace(bucket, prefix string) error {
	if err := tiers.CheckName(bucket); err != nil {
		return fmt.Errorf("s3: bad bucket name: %w", err)
	}
	if strings.HasSuffix(prefix, "/") {
		return fmt.Errorf("s3: bad prefix %.80q: want it without a slash at its end", prefix)
	}
	if err := tiers.CheckPrefix(prefix); err != nil {
		return fmt.Errorf("s3: bad prefix: %w", err)
	}
	return nil
}

// KnowsSSE reports whether a server-side encryption is one that Options.SSE takes.
func KnowsSSE(name string) bool {
	switch types.ServerSideEncryption(name) {
	case types.ServerSideEncryptionAes256, types.ServerSideEncryptionAwsKms, types.ServerSideEncryptionAwsKmsDsse:
		return true
	}
	return false
}

func (o *Options) check() error {
	if err := checkPlace(o.Bucket, o.Prefix); err != nil {
		return err
	}
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("s3: bad endpoint %.80q: want http://host:port or https://host", o.Endpoint)
		}
	}
	if (o.AccessKey == "") != (o.SecretKey == "") {
		return errors.New("s3: an access key without its secret key, or the reverse: give both, or none to use the default chain")
	}
	if o.SSE != "" && !KnowsSSE(o.SSE) {
		return fmt.Errorf("s3: unknown server-side encryption %.40q: want AES256, aws:kms or aws:kms:dsse", o.SSE)
	}
	if o.KMSKey != "" && !strings.HasPrefix(o.SSE, "aws:kms") {
		return fmt.Errorf("s3: a KMS key with the server-side encryption %.40q: want aws:kms", o.SSE)
	}
	if o.Timeout < 0 {
		return fmt.Errorf("s3: bad time-out %v: want more than 0", o.Timeout)
	}
	return nil
}

// client makes the SDK's client.
func (o *Options) client(ctx context.Context) (*s3.Client, error) {
	var load []func(*config.LoadOptions) error
	if o.AccessKey != "" {
		load = append(load, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, o.SessionToken)))
	}
	c, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, fmt.Errorf("s3: load the default configuration: %w", err)
	}
	if o.Region != "" {
		c.Region = o.Region
	}
	if c.Region == "" && o.Endpoint != "" {
		c.Region = "us-east-1" // what servers that are not AWS expect
	}
	if c.Region == "" {
		return nil, fmt.Errorf("s3: no region for the bucket %s: set one, or AWS_REGION", o.Bucket)
	}
	return s3.NewFromConfig(c, func(x *s3.Options) {
		if o.Endpoint != "" {
			x.BaseEndpoint = aws.String(o.Endpoint)
		}
		if o.HTTPClient != nil {
			x.HTTPClient = o.HTTPClient
		}
		x.UsePathStyle = o.PathStyle
		x.Retryer = aws.NopRetryer{}
		// Checksums are set by hand, as headers: a trailer needs a framing that some servers store.
		x.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		x.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}), nil
}
