package client_test

import (
	"testing"

	"varve/tiers/tiertest"
)

func TestContractMiniredis(t *testing.T) { tiertest.TestWarm(t, miniServer) }

// TestContractValkey runs the suite on a real primary with a replica.
func TestContractValkey(t *testing.T) {
	p := newPair(t)
	tiertest.TestWarm(t, p.server)
}
