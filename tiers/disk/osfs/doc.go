// Package osfs is the operating system's file system behind the seam disk.FS: plain Linux system
// calls, with no buffering and no retries but those that a signal asks for.
//
// A file is written with pwrite, or pwritev for large gathered writes, and made durable with
// fdatasync; names are made durable with fsync of their directory. A failed sync is returned as it
// is and never asked again, because the kernel reports a lost page once and then calls it clean.
package osfs
