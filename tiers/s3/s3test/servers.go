package s3test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	gofakes3 "github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	rclone "github.com/rclone/gofakes3"
	rclonemem "github.com/rclone/gofakes3/s3mem"
)

// began is what every clock of a server in process shows.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Gofakes3 returns a server with one bucket.
func Gofakes3(bucket string) (http.Handler, error) {
	h, err := RawGofakes3(bucket)
	return &mended{next: h, keepsSums: true}, err
}

// RawGofakes3 returns the server as it comes.
func RawGofakes3(bucket string) (http.Handler, error) {
	clock := gofakes3.FixedTimeSource(began)
	b := s3mem.New(s3mem.WithTimeSource(clock), s3mem.WithVersionSeed(1))
	if err := b.CreateBucket(bucket); err != nil {
		return nil, fmt.Errorf("s3test: create the bucket %s: %w", bucket, err)
	}
	return gofakes3.New(b, gofakes3.WithTimeSource(clock), gofakes3.WithTimeSkewLimit(0), gofakes3.WithLogger(gofakes3.DiscardLog())).Server(), nil
}

// Rclone returns a server of rclone's fork with one bucket.
func Rclone(bucket string) (http.Handler, error) {
	h, err := RawRclone(bucket)
	return &mended{next: h}, err
}

// RawRclone returns the fork as it comes.
func RawRclone(bucket string) (http.Handler, error) {
	clock := rclone.FixedTimeSource(began)
	b := rclonemem.New(rclonemem.WithTimeSource(clock), rclonemem.WithVersionSeed(1))
	if err := b.CreateBucket(context.Background(), bucket); err != nil {
		return nil, fmt.Errorf("s3test: create the bucket %s: %w", bucket, err)
	}
	return rclone.New(b, rclone.WithTimeSource(clock), rclone.WithTimeSkewLimit(0), rclone.WithLogger(rclone.DiscardLog())).Server(), nil
}

// Client sends requests to a handler without a socket.
type Client struct{ Handler http.Handler }

// Do calls the handler. The request's body is read whole before, as a socket would have it, also where
// the handler looks only at a part of it.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := r.Clone(r.Context())
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
	}
	setBody(in, body)
	in.RequestURI = in.URL.RequestURI()
	in.RemoteAddr = "in process"
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	out := httptest.NewRecorder()
	c.Handler.ServeHTTP(out, in)
	answer := out.Result()
	answer.Request = r
	if answer.ContentLength < 0 && r.Method != http.MethodHead {
		answer.ContentLength = int64(out.Body.Len()) // as net/http's server does with what fits a buffer
	}
	return answer, nil
}
