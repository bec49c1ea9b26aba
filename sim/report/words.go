package report

// Properties says in words what each property promises, by its id. TESTING.md has the same list with
// the places that judge it.
var Properties = map[string]string{
	"K1":        "An acked record is there after every recovery: same bytes, same offset, within the loss window of the fsync mode.",
	"K2":        "What a reader has seen never changes and never vanishes.",
	"K3":        "A recovered log is the committed one, with no hole, and perhaps more behind it.",
	"K4":        "No record that nobody appended, none twice, no offset acked twice.",
	"K5":        "A record acked before another append was called has the lower offset.",
	"K6":        "Append, read and a look at the tail are linearizable.",
	"K7":        "An append of unknown outcome is in or out for good from its first observation.",
	"K8":        "No ack at or above an offset that a later epoch has acked; every open raises the epoch.",
	"K9":        "After a failed sync nothing is acked until the log is opened again, and no failed call is ignored.",
	"K10":       "Recovering what was just recovered changes nothing.",
	"K11":       "Damage is reported or refused: never served, never cut away below what is proven.",
	"K12":       "What the cold tier holds is what the log holds.",
	"K13":       "Nothing is deleted that no verified copy replaces; the tiers together have no gap.",
	"K14":       "Retention deletes what the policy says and no more; the start of the log never moves back.",
	"K15":       "Following the log is ordered, complete, without repeats, and resumes in the next life.",
	"K16":       "Offsets are dense across rolls and restarts.",
	"K17":       "The log agrees with a reference log after each call, under any configuration.",
	"K18":       "The same seed is the same run, always.",
	"K19":       "Once the faults are over, everything resolves in bounded time.",
	"K20":       "After a clean close nothing is left over: no open file, no stray name, no work for a recovery.",
	"K21":       "Every rare branch that is marked is reached.",
	"K22":       "A decoder written from the format's description alone finds every record that the device holds.",
	"K23":       "An append that failed definitely had no effect.",
	"K24":       "A commit is one write and at most one sync.",
	"K25":       "After a crash without damage the log opens with no operator.",
	"assert":    "An invariant that the core or the format code asserts about itself.",
	"panic":     "Nothing panics.",
	"hang":      "Every seed ends; one that takes a minute is taken for endless.",
	"disk":      "No write goes to a segment of an earlier life.",
	"sector":    "No write touches a sector that holds records claimed to be durable.",
	"exclusion": "One sync of a file or of the directory at a time; no commit where zeros are being written.",
	"config":    "A configuration that cannot work is refused, and has no effect.",
	"X3":        "A completion that arrives one life late changes nothing.",
	"D21":       "Two processes never hold the lock of one directory.",
	"N1":        "A topic that was created is there after every crash, until it is deleted.",
	"N2":        "A deleted topic does not come back.",
	"N3":        "A name stands for one topic at a time, for all who ask.",
	"N4":        "A partition holds only what was sent to it, and nothing of an earlier topic of its name.",
	"N5":        "No producer id is given out twice.",
	"N6":        "The epoch of a leader never goes back.",
	"N7":        "A batch is stored as it was made, and verifies when a client gets it.",
}

// markWords name the three places where marks lie.
var markWords = map[string]string{
	"disk": "Faults of the disk that took effect",
	"core": "Rare branches and verdicts of the core",
	"sim":  "Crashes, clocks and checks of the world",
}
