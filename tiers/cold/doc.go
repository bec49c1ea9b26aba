// Package cold carries out the effects of the cold tier on a bucket: it makes objects of segment
// files, reads and replaces the manifest, deletes objects, and lets objects be read as files are. It
// decides nothing: what is exported when, what a lost swap means and what may be deleted is package
// core's.
package cold
