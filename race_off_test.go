//go:build !race

package varve_test

const raceEnabled = false
