// Package passthrough injects faults over a real directory: it wraps any disk.FS and lets calls
// meet the faults of package faultfs that need no simulated device. What the kernel and the device
// really do stays theirs; this covers how a program takes errors that real disks rarely give.
//
// A failing sync (D13NoSpace, D17Clean, D17ReadOnly, D22DirSync) does not sync; a lying one (D9Lie)
// says that it did; after D17Next the next sync of that name fails. Of a short write a prefix is
// really written. D8Misdirect, D14ReadBad and D17Revert need a device of their own: arming one
// panics, and rates skip them.
package passthrough
