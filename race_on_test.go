//go:build race

package varve_test

const raceEnabled = true
