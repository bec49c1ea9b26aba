// Package manifest is the catalogue of the cold tier: which objects hold a log, who says so, and
// where the log starts. It models it, encodes it as JSON text with a segment a line, parses it, and
// checks it; it does no I/O and decides nothing. The text is in docs/format.md.
//
// The text has one form only: the parser takes what the encoder makes, and nothing else that is JSON.
// So it is small, it allocates nothing once its memory has grown, no number passes through a float,
// and no two programs read one manifest in two ways.
package manifest
