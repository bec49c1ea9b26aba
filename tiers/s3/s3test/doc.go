// Package s3test has S3 servers in process for tests: gofakes3 and the fork of it that rclone keeps,
// each behind a handler of ours that rejects or mends what they are known to do wrong, and a client
// that calls them without a socket. The only program that imports it is varve-sim, for its demo.
package s3test
