// Package tiers holds the seams between a log and the stores that its closed parts move to. A store
// decides nothing: what to write, under which condition, and what an answer means is decided by
// package core. The package imports the standard library only; the bindings to client libraries are
// packages of their own, which nothing but the program imports.
package tiers
