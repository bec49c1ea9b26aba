//go:build !unix

package kafka

import "errors"

// errTooManyFiles is met on Unix alone.
var errTooManyFiles = errors.New("too many open files")
