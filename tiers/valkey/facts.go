package valkey

import (
	"bytes"
	"fmt"
	"strings"
)

// Facts are what a server says about itself. What it does not say is empty.
type Facts struct {
	Name     string // valkey, or redis
	Version  string
	Role     string // master: a primary
	Replicas int    // online
	Policy   string // maxmemory-policy
	Append   bool   // it writes an append-only file
	Fsync    string // appendfsync
	Saves    bool   // it writes snapshots
	Tells    bool   // CONFIG GET is answered
}

// read takes the facts out of the replies to INFO and CONFIG GET. It allocates only where something
// changed.
func (f *Facts) read(info, fsync, save []byte) {
	var redis, valkey []byte
	was := *f
	*f = Facts{Tells: fsync != nil, Saves: len(save) > 0}
	for len(info) > 0 {
		line, rest, _ := bytes.Cut(info, []byte("\n"))
		info = rest
		name, value, ok := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(":"))
		if !ok {
			continue
		}
		switch string(name) {
		case "redis_version":
			redis = value
		case "valkey_version":
			valkey = value
		case "role":
			f.Role = same(was.Role, value)
		case "maxmemory_policy":
			f.Policy = same(was.Policy, value)
		case "aof_enabled":
			f.Append = string(value) == "1"
		default:
			if bytes.HasPrefix(name, []byte("slave")) && bytes.Contains(value, []byte("state=online")) {
				f.Replicas++
			}
		}
	}
	f.Fsync = same(was.Fsync, fsync)
	switch {
	case len(valkey) > 0:
		f.Name, f.Version = "valkey", same(was.Version, valkey)
	case len(redis) > 0:
		f.Name, f.Version = "redis", same(was.Version, redis)
	}
}

// words are what most servers say.
var words = [...]string{"master", "slave", "noeviction", "always", "everysec", "no"}

// same is string(b), mostly without an allocation.
func same(was string, b []byte) string {
	if was == string(b) {
		return was
	}
	for _, w := range words {
		if w == string(b) {
			return w
		}
	}
	return string(b)
}

// Finding is something about a server that makes it unsafe to rely on.
type Finding uint8

// Findings.
const (
	UnknownServer Finding = iota // it does not say what it is
	OldVersion                   // it lacks commands that a log needs
	NotPrimary                   // writes will be refused
	FewReplicas                  // no ack can come
	Minority                     // a failover may choose a replica that no ack waited for
	Evicts                       // it may remove the stream when memory is short
	Unpersisted                  // a restart loses everything
	Snapshots                    // a restart loses what came after the last snapshot
	LateFsync                    // a power loss loses the last second
	Unsaid                       // it does not tell how it persists
	findingCount
)

var findingText = [findingCount]string{
	"the server does not say what it is: expected a version in INFO",
	"the server is too old: expected Valkey, or Redis 6.2 or later, which have XTRIM MINID",
	"the server is a replica: writes are refused; name the primary, or the sentinels",
	"fewer replicas are online than an ack waits for: no append can be acked",
	"an ack waits for fewer replicas than make a majority with the primary: a failover may lose what was acked",
	"maxmemory-policy is not noeviction: the server may remove whole streams; set it to noeviction",
	"the server persists nothing: a restart loses every entry; set appendonly yes",
	"the server persists snapshots alone: a restart loses what came after the last one; set appendonly yes",
	"appendfsync is not always: a power loss of every server loses the last second",
	"the server does not tell how it persists: CONFIG GET is refused; a restart may lose everything",
}

// String says what it is and what to do.
func (f Finding) String() string {
	if f < findingCount {
		return findingText[f]
	}
	return "unknown finding"
}

// Findings is a set of them.
type Findings uint32

// Has reports whether f is in the set.
func (s Findings) Has(f Finding) bool { return s>>f&1 != 0 }

// Each calls do with every finding of the set.
func (s Findings) Each(do func(Finding)) {
	for f := range findingCount {
		if s.Has(f) {
			do(f)
		}
	}
}

// String lists them.
func (s Findings) String() string {
	var all []string
	s.Each(func(f Finding) { all = append(all, f.String()) })
	return strings.Join(all, "; ")
}

// judge finds what is unsafe for an ack that waits for this many replicas.
func (f *Facts) judge(replicas int) (s Findings) {
	set := func(bad bool, finding Finding) {
		if bad {
			s |= 1 << finding
		}
	}
	set(f.Version == "", UnknownServer)
	set(f.Name == "redis" && older(f.Version, 6, 2), OldVersion)
	set(f.Role != "master" && f.Role != "", NotPrimary)
	set(f.Role == "master" && f.Replicas < replicas, FewReplicas)
	set(2*(replicas+1) <= f.Replicas+1, Minority)
	set(f.Policy != "noeviction" && f.Policy != "", Evicts)
	set(!f.Tells, Unsaid)
	set(f.Tells && !f.Append && !f.Saves, Unpersisted)
	set(f.Tells && !f.Append && f.Saves, Snapshots)
	set(f.Tells && f.Append && f.Fsync != "always", LateFsync)
	return s
}

// older reports whether a version is below major.minor, or none.
func older(version string, major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(version, "%d.%d", &a, &b); err != nil {
		return true
	}
	return a < major || a == major && b < minor
}
