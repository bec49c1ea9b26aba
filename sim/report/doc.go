// Package report writes what a run did, and what the simulator found, as one HTML page that needs
// nothing else: no network, no file beside it.
//
//	story := report.Tell(world, schedule)         // runs it, twice, and watches
//	err := report.Write(w, &report.Page{Story: story, Overview: overview})
//
// The page holds the timeline of the run in lanes over virtual time; the sectors of each file as the
// kernel shows them and as the device holds them, at each step; what was violated, in words; the
// line that runs it again; the schedule; and the overview: marks, planted bugs, the bound of the
// exhaustive search. Figures come from the JSON that the program printed; what was not given is
// said to be missing.
//
// All that comes from a run or a file is escaped (html/template), and a policy in the page allows
// only its own scripts, by their hashes.
package report
