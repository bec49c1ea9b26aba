package main

import (
	"os"
	"runtime/pprof"
)

func profile() func() {
	p := os.Getenv("PROF")
	if p == "" {
		return func() {}
	}
	f, _ := os.Create(p)
	_ = pprof.StartCPUProfile(f)
	return func() { pprof.StopCPUProfile(); f.Close() }
}
