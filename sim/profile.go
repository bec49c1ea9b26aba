package sim

// Profile is a way to draw a schedule. Uniform draws everything alike; the others aim at chains
// that uniform draws hardly ever complete.
type Profile uint8

// Profiles.
const (
	Uniform   Profile = iota
	Calm              // crashes, but no failing call
	Swallow           // a failed sync that a later sync, or the sync of another lane, would hide
	Directory         // a directory sync that fails and then "succeeds"
	Cut               // a failed write, rolled back, and a power loss soon after
	Quiet             // lives without an append
	Cache             // kill, memory pressure, power loss after a failed sync
	Again             // crashes while the log is created, in recovery, and in the recovery after that
	Full              // a small disk
	Decay             // rot, misdirected and lost writes, stale bytes
	Aging             // retention, rolls, jumping clocks
	profileCount
)

var profileNames = [profileCount]string{
	"uniform", "calm", "swallow", "directory", "cut", "quiet", "cache", "again", "full", "decay", "aging",
}

// String returns the word of a profile.
func (p Profile) String() string {
	if p < profileCount {
		return profileNames[p]
	}
	return "unknown"
}

// profileWeights is the mix of the disk profile, out of their sum.
var profileWeights = [profileCount]int64{
	Uniform: 44, Calm: 8, Swallow: 6, Directory: 6, Cut: 6, Quiet: 5, Cache: 6, Again: 6, Full: 4, Decay: 5, Aging: 4,
}

func drawProfile(r *Rand) Profile {
	var sum int64
	for _, w := range profileWeights {
		sum += w
	}
	at := r.Below(sum)
	for p, w := range profileWeights {
		if at -= w; at < 0 {
			return Profile(p)
		}
	}
	return Uniform
}

// producersMax bounds the idempotent producers of a seed.
const producersMax = 4
