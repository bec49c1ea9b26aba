// Package dirbucket is an object store in a directory of this host: the default for a cold tier that
// needs no server. Several processes may use one directory at a time.
//
// An object is the file of its key: the bytes that were put, and behind them a trailer of 40 bytes
// with length, checksum and the number that makes its tag unique. So it appears, is replaced and is
// described in one rename. Everything else is in the folder .varve:
//
//	format       makes the directory a bucket, and says which version
//	lock         flock: held while a condition is looked at and the change that it allows is made
//	dirty        the folder of a change that is not synced yet
//	tmp/         files being written
//	uploads/ID/  an upload: its key, and its parts
//
// A change: write a file in tmp, sync it; take the lock, look at the condition, write dirty, rename,
// sync the folder, remove dirty. Who reads something while dirty is there syncs that folder first:
// nobody sees what a power loss could take back, also where the writer was killed in between. A file
// whose sync fails is thrown away. After a folder's sync failed the bucket answers nothing more before
// it is opened again: the kernel reports what it lost once, then calls it clean.
//
// No key leads out of the directory, and no symbolic link is followed below it.
package dirbucket
