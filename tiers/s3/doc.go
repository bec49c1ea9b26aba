// Package s3 binds tiers.Bucket to a bucket of an S3 server, by aws-sdk-go-v2.
//
// A call is one request, or for a list one request a page: the SDK's retries are off, because when to
// try again is decided by package core, and a request that was sent twice may meet its own first
// effect. Every body goes with its CRC32C, which the server compares; the object of an upload in
// parts with the CRC32C of the whole. A body that comes back is taken only in the length and range
// that were asked for.
//
// Conditional writes must be honoured, else two writers both win: Check proves it.
package s3
