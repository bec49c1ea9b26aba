//go:build unix

package kafka

import "syscall"

// errTooManyFiles is what an accept fails with while no descriptor is free.
const errTooManyFiles = syscall.EMFILE
