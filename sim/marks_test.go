package sim

import (
	"strings"
	"testing"
)

// faultMarks maps each fault that touches disk, clock or process to the marks that prove it struck.
var faultMarks = map[string]string{
	"D1":  "disk D1.sectors, disk D1.garbage",
	"D2":  "disk D2.torn",
	"D3":  "disk D3.size",
	"D5":  "disk D5.dirops, disk D5.renamehalf, disk D5.parent",
	"D6":  "disk D6.stale",
	"D7":  "disk D7.rot, sim rot",
	"D8":  "disk D8.misdirect",
	"D9":  "disk D9.lie",
	"D10": "disk D10.writeback",
	"D11": "disk D11.short, disk D11.interrupt",
	"D12": "disk D12.applied",
	"D13": "disk D13.nospace, disk D13.short, disk D13.capacity",
	"D14": "disk D14.once, disk D14.bad",
	"D15": "disk D15.error",
	"D16": "sim slow, sim hang",
	"D17": "disk D17.clean, disk D17.revert, disk D17.next, disk D17.readonly, disk D17.writeback",
	"D18": "disk D18.pressure, sim pressure",
	"D19": "disk D19.dead, disk D19.torn",
	"D20": "sim crash-in-recovery, sim crash-in-recovery-twice",
	"D21": "disk D21.locked, sim second-process",
	"D22": "disk D22.dirsync",
	"C1":  "sim clock-forward",
	"C2":  "sim clock-back, core clock-back",
	"C3":  "sim clock-freeze",
	"C4":  "sim clock-skew",
	"X1":  "sim config-changed, sim bad-config",
	"X2":  "sim pause",
	"X3":  "sim stale-completion",
}

// verdictMarks maps each verdict of recovery to the marks that prove it was given.
var verdictMarks = map[string]string{
	"good, nothing to do":                       "core clean-open",
	"damage below evidence, footer or padding":  "core footer-derived",
	"damage below evidence, batch":              "core corrupt, core allow-damaged, sim open-refused",
	"above evidence, torn":                      "core torn-tail",
	"above evidence, evidence behind the tear":  "core evidence-behind",
	"above evidence, whole with a wrong CRC":    "core torn-checksum, core refused-checksum",
	"committed suffix missing":                  "core lost-suffix",
	"no superblock slot, or one":                "core super-refused, core super-one-slot",
	"files below HotStart":                      "core leftover",
	"unfinished creation and *.tmp":             "core unfinished, core tmp",
	"wholly superseded":                         "core superseded",
	"void by lineage":                           "core void-file",
	"contributes nothing: quarantine":           "core quarantine",
	"damaged header over verifying batches":     "core header-by-name",
	"I/O error":                                 "core open-io-error, sim open-failed",
	"no space while opening":                    "core open-no-space",
	"content above evidence: rescued, again":    "core rescue, core rescue-replacement",
	"a source that changed under the rescue":    "core replan",
	"an open that died before it was complete":  "core incomplete-open",
	"an empty directory becomes a log":          "core new-log",
	"opening twice: the second plan is empty":   "sim second-plan",
	"failed sync of a file, of a directory":     "core poison-sync, core poison-dir, sim poisoned",
	"ENOSPC on a write: rolled back, or poison": "core rollback, core rollback-failed, core no-space",
}

func TestMarksCoverFaultsAndVerdicts(t *testing.T) {
	known := map[string]bool{}
	for _, e := range registry() {
		known[e.name] = true
	}
	for _, table := range []map[string]string{faultMarks, verdictMarks} {
		for what, marks := range table {
			for _, name := range strings.Split(marks, ", ") {
				if !known[name] {
					t.Errorf("%s: no mark %q", what, name)
				}
				if why := Unreachable[name]; why != "" {
					t.Errorf("%s: the mark %q cannot be reached: %s", what, name, why)
				}
			}
		}
	}
	for name := range Unreachable {
		if !known[name] {
			t.Errorf("no mark %q", name)
		}
	}
	for m, name := range coreMarkNames {
		if name == "" {
			t.Errorf("mark %d of the core has no name", m)
		}
	}
	for m, name := range topicMarkNames {
		if name == "" {
			t.Errorf("mark %d of the topics has no name", m)
		}
	}
}
