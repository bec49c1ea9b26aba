// Package scrub looks at the cold tier of a log from outside: it reads every object, compares the
// bucket with the manifest, names what is wrong, and can rebuild a manifest that is lost. It needs no
// local directory and may run beside the log's writer: it lists first and reads the manifest after
// that, and an object is recorded there before it is written.
package scrub
