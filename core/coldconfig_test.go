package core_test

import (
	"errors"
	"testing"

	"varve/core"
	"varve/core/manifest"
)

func TestColdConfigurationOutOfRange(t *testing.T) {
	good := core.DefaultConfig()
	good.Cold = true
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name  string
		spoil func(c *core.Config)
	}{
		{"age of an upload below a millisecond", func(c *core.Config) { c.ColdMaxUploadAge = 999_999 }},
		{"age of an upload beyond what a clock shows", func(c *core.Config) { c.ColdMaxUploadAge = 1<<63 - 1 }},
		{"no segment outside of pages", func(c *core.Config) { c.ColdPageSegments = 0 }},
		{"more segments than a manifest lists", func(c *core.Config) { c.ColdPageSegments = manifest.SegmentsMax + 1 }},
		{"a negative number of objects", func(c *core.Config) { c.ColdScanObjects = -1 }},
		{"too many objects", func(c *core.Config) { c.ColdScanObjects = 1<<20 + 1 }},
		{"a negative number of bytes that wait for a mirror", func(c *core.Config) { c.Warm, c.WarmHoldBytes = true, -1 }},
		{"too many of them", func(c *core.Config) { c.Warm, c.WarmHoldBytes = true, 1<<30+1 }},
	} {
		c := good
		if x.spoil(&c); c.Validate() == nil {
			t.Errorf("%s: accepted", x.name)
		}
	}
}

func TestOffloadRefuses(t *testing.T) {
	r := newRig(t)
	r.open(flipConfig())
	for _, call := range []func(core.Now, core.Offset) error{r.log.Export, r.log.Offload} {
		if err := call(r.now, 0); !errors.Is(err, core.ErrNoColdTier) {
			t.Errorf("without a cold tier: %v", err)
		}
	}
}
