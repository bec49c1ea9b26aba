// Package topics decides everything about the topics of a node: their names, incarnations, partitions
// and configuration, and which producer ids are given out. Its memory is the catalogue, a log of entries.
package topics
