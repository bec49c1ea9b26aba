package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints version, revision and format.
func (versionCommand) Run(s *streams) error {
	version, revision := "devel", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			version = v
		}
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" {
				revision = kv.Value
			}
		}
	}
	_, err := fmt.Fprintf(s.out, "varve %s, revision %s, on-disk format 1, %s\n", version, revision, runtime.Version())
	return err
}
