// Package fuzz holds the native fuzz targets of the format, the schedules and the simulator, and the
// loader of a corpus from elsewhere.
//
//	go test ./fuzz                                                      // the seeds of every target, once
//	go test -run '^$' -fuzz '^FuzzScanSalvage$' -fuzztime 20s ./fuzz    // one target, on and on
//
// Each target checks a property, not only that nothing panics: what decodes is the one encoding of
// what it decodes to, a scan finds a subset of what was written, memory stays within what the bytes
// present allow, a schedule made of any bytes runs without a violation. Bytes that a checksum
// protects are tried twice: as they are, and with the checksums put right, because no fuzzer gets
// past a checksum by chance.
//
// Seeds come from the project's own encoder. VARVE_FUZZ_CORPUS, a folder or a zip of files, adds
// others: the go-fuzz corpus, say, which is made for other parsers.
package fuzz
