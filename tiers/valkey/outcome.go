package valkey

import "bytes"

// Outcome is what a server made of a command. Everything but Done had no effect.
type Outcome uint8

// Outcomes.
const (
	Unsent        Outcome = iota // there is no answer: the operation failed
	Done                         // it took effect
	Smaller                      // the id is equal to, or smaller than, the last one of the stream
	Full                         // the server may use no more memory
	ReadOnly                     // the server is no primary
	WrongType                    // the key holds no stream
	Denied                       // the user may not, or must say who it is
	Misconfigured                // the server takes no writes as long as it cannot save, or has too few replicas
	Busy                         // the server is loading, or its cluster is not up
	Failed                       // anything else; Refusal.Text says what
	outcomeCount
)

var outcomeNames = [outcomeCount]string{
	"unsent", "done", "equal or smaller id", "out of memory", "read-only replica", "key of another type", "denied",
	"writes are refused by the server's configuration", "busy", "refused",
}

// String returns the outcome in words.
func (o Outcome) String() string {
	if o < outcomeCount {
		return outcomeNames[o]
	}
	return "unknown outcome"
}

// Refusal is the outcome of a command, with what the server said where no Outcome stands for all of it.
type Refusal struct {
	Outcome Outcome
	Text    string
}

// prefixes of errors.
var prefixes = []struct {
	text    string
	outcome Outcome
}{
	{"The ID specified in XADD is equal or smaller", Smaller},
	{"The ID specified in XADD must be greater than 0-0", Smaller},
	{"The stream has exhausted the last possible ID", Smaller},
	{"OOM", Full},
	{"READONLY", ReadOnly},
	{"WRONGTYPE", WrongType},
	{"NOAUTH", Denied},
	{"NOPERM", Denied},
	{"WRONGPASS", Denied},
	{"MISCONF", Misconfigured},
	{"NOREPLICAS", Misconfigured},
	{"LOADING", Busy},
	{"BUSY", Busy},
	{"MASTERDOWN", Busy},
	{"CLUSTERDOWN", Busy},
	{"TRYAGAIN", Busy},
}

// refusal says what became of a command.
func refusal(r *Reply) Refusal {
	if r.Kind != Error {
		return Refusal{Outcome: Done}
	}
	text := bytes.TrimPrefix(r.Text, []byte("ERR ")) // client libraries take it away
	for i := range prefixes {
		if bytes.HasPrefix(text, []byte(prefixes[i].text)) {
			if r := (Refusal{Outcome: prefixes[i].outcome}); r.Outcome != Denied {
				return r
			}
			return Refusal{Denied, string(r.Text)} // it names the user and the command
		}
	}
	return Refusal{Failed, string(r.Text)}
}

// redirected reports whether a server of a cluster sent a command elsewhere: then the pipeline did not
// run where it should.
func redirected(replies []Reply) bool {
	for i := range replies {
		if r := &replies[i]; r.Kind == Error && (bytes.HasPrefix(r.Text, []byte("MOVED ")) || bytes.HasPrefix(r.Text, []byte("ASK "))) {
			return true
		}
	}
	return false
}
