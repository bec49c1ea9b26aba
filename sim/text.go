package sim

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"varve/core"
	"varve/faultfs"
	"varve/sim/fakebucket"
	"varve/sim/fakevalkey"
)

// eventsMax and opsMax bound a schedule: a hostile file cannot ask for more.
const (
	eventsMax  = 1 << 16
	opsMax     = 1 << 15
	clientsMax = 8
	bytesMax   = 64 << 20 // payloads, all together
	fileMax    = 1 << 20  // zeros written ahead, which nothing but the configuration bounds
)

// TextError is a line of a schedule's text form that cannot be read.
type TextError struct {
	Line     int
	Expected string
	Found    string
}

func (e *TextError) Error() string {
	return fmt.Sprintf("sim: schedule line %d: expected %s, found %q", e.Line, e.Expected, e.Found)
}

// AppendText appends the text form of a schedule: a header of "key value" lines, then a line an
// event. Parse reads it back, exactly.
func (s *Schedule) AppendText(dst []byte) []byte {
	h := &s.Header
	dst = fmt.Appendf(dst, "varve schedule 1\nseed %d\nprofile %s\nclients %d\nlatency write=%d sync=%d\ncapacity %d\n",
		h.Seed, h.Profile, h.Clients, h.Write, h.Sync, h.Capacity)
	dst = append(dst, "switches"...)
	for set := h.Switches; set != 0; set &= set - 1 {
		dst = append(dst, ' ')
		dst = append(dst, switchNames[bits.TrailingZeros64(set)]...)
	}
	dst = appendFaults[faultfs.Fault](dst, "faults", uint64(h.Faults))
	dst = appendRates[faultfs.Op](dst, "rates", h.Rates[:])
	if h.Cold() {
		dst = appendFaults[fakebucket.Fault](dst, "bucket", uint64(h.Bucket))
		dst = appendRates[fakebucket.Op](dst, "refusals", h.Refusals[:])
	}
	if h.Warm() {
		dst = fmt.Appendf(dst, "\nreplicas %d\npersist %d", h.Replicas, h.Persist)
		dst = appendFaults[fakevalkey.Fault](dst, "server", uint64(h.Server))
		dst = appendRates[fakevalkey.Fault](dst, "strikes", h.Strikes[:])
	}
	for i := range h.Config {
		dst = fmt.Appendf(dst, "\nconfig.%d", i)
		for _, k := range configKeys {
			if !h.has(k.tier) {
				continue
			}
			dst = fmt.Appendf(dst, " %s=%d", k.name, k.at(&h.Config[i]))
		}
	}
	if h.Node {
		dst = append(dst, "\nnode"...)
	}
	dst = append(dst, "\nevents\n"...)
	for i := range s.Events {
		dst = s.Events[i].appendText(dst)
	}
	return dst
}

// word is a small number that has a name.
type word interface {
	~uint8
	String() string
}

// appendFaults appends a line with the names of a set.
func appendFaults[F word](dst []byte, key string, set uint64) []byte {
	dst = append(append(dst, '\n'), key...)
	for ; set != 0; set &= set - 1 {
		dst = append(append(dst, ' '), F(bits.TrailingZeros64(set)).String()...)
	}
	return dst
}

// appendRates appends a line with those rates that are not 0.
func appendRates[O word](dst []byte, key string, rates []uint16) []byte {
	dst = append(append(dst, '\n'), key...)
	for at, rate := range rates {
		if rate != 0 {
			dst = fmt.Appendf(dst, " %s=%d", O(at).String(), rate)
		}
	}
	return dst
}

func (e *Event) appendText(dst []byte) []byte {
	dst = fmt.Appendf(dst, "%d %s", e.At, e.Kind)
	if e.Client != 0 {
		dst = fmt.Appendf(dst, " client=%d", e.Client)
	}
	for i, v := range [4]int64{e.A, e.B, e.C, e.D} {
		switch word := valueWord(e.Kind, i, v); {
		case word != "" && (v != 0 || e.Kind != Append):
			dst = fmt.Appendf(dst, " %s=%s", argNames[e.Kind][i], word)
		case argNames[e.Kind][i] != "" && v != 0:
			dst = fmt.Appendf(dst, " %s=%d", argNames[e.Kind][i], v)
		}
	}
	return fmt.Appendf(dst, " sub=%x\n", e.Sub)
}

// Parse reads the text form. The error, a *TextError, names the line.
func Parse(text []byte) (*Schedule, error) {
	p := parser{s: &Schedule{}}
	for i := range p.s.Header.Config {
		c, d := &p.s.Header.Config[i], core.DefaultConfig()
		c.ColdMaxUploadAge, c.ColdPageSegments, c.ColdScanObjects = d.ColdMaxUploadAge, d.ColdPageSegments, d.ColdScanObjects
		c.WarmReplicas, c.WarmWait, c.WarmBytes = d.WarmReplicas, d.WarmWait, d.WarmBytes
		c.WarmSegments, c.WarmEntryBytes, c.WarmHoldBytes = d.WarmSegments, d.WarmEntryBytes, d.WarmHoldBytes
	}
	if !strings.HasPrefix(string(text), "varve schedule 1\n") {
		first, _, _ := strings.Cut(string(text[:min(len(text), 80)]), "\n")
		return nil, &TextError{1, "varve schedule 1", first}
	}
	for line := range strings.Lines(string(text)) {
		p.line++
		line = strings.TrimSuffix(line, "\n")
		words := strings.Fields(line)
		if p.line == 1 || len(words) == 0 || words[0][0] == '#' {
			continue
		}
		read := p.header
		if p.events {
			read = p.event
		}
		if err := read(words); err != nil {
			return nil, err
		}
	}
	return p.s, p.finish()
}

type parser struct {
	s      *Schedule
	line   int
	events bool
	seen   [2]bool // configurations
	bytes  int64   // of payloads
}

func (p *parser) fail(expected, found string) error {
	return &TextError{p.line, expected, found}
}

func (p *parser) finish() error {
	h := &p.s.Header
	switch {
	case !p.events:
		return p.fail("a line: events", "the end")
	case !p.seen[0] || !p.seen[1]:
		return p.fail("config.0 and config.1", "neither or one")
	case h.Clients < 1 || h.Clients > clientsMax:
		return p.fail("clients 1..8", strconv.FormatInt(h.Clients, 10))
	case h.Write < 1 || h.Sync < 1 || h.Write > 1e9 || h.Sync > 1e9:
		return p.fail("latencies of 1 ns to 1 s", fmt.Sprint(h.Write, " ", h.Sync))
	case h.Config[0].Cold != h.Config[1].Cold || h.Config[0].Warm != h.Config[1].Warm:
		return p.fail("the same tiers in both configurations", "others")
	case h.Replicas < 0 || h.Replicas > fakevalkey.ReplicasMax:
		return p.fail(fmt.Sprintf("replicas 0..%d", fakevalkey.ReplicasMax), strconv.FormatInt(h.Replicas, 10))
	case h.Persist < 0 || h.Persist > int64(fakevalkey.Nothing):
		return p.fail(fmt.Sprintf("persist 0..%d", fakevalkey.Nothing), strconv.FormatInt(h.Persist, 10))
	case h.Capacity < 0:
		return p.fail("capacity of 0 or more", strconv.FormatInt(h.Capacity, 10))
	}
	for i := range h.Config {
		h.Config[i].LogID, h.Config[i].Nonce = identity(h.Seed)
		if err := h.Config[i].Validate(); err != nil {
			return p.fail(fmt.Sprintf("config.%d that the log accepts", i), err.Error())
		}
		if n := h.Config[i].PrepareBytes; n > fileMax {
			return p.fail(fmt.Sprintf("prepare_bytes of at most %d", fileMax), strconv.FormatInt(n, 10))
		}
	}
	return nil
}

func (p *parser) header(words []string) error {
	h := &p.s.Header
	key, rest := words[0], words[1:]
	switch key {
	case "seed", "clients", "capacity", "replicas", "persist":
		if len(rest) != 1 {
			return p.fail("one number", strings.Join(rest, " "))
		}
		return p.scalar(key, rest[0])
	case "profile":
		i := slices.Index(profileNames[:], strings.Join(rest, " "))
		if i < 0 {
			return p.fail("a profile", strings.Join(rest, " "))
		}
		h.Profile = Profile(i)
		return nil
	case "switches":
		for _, w := range rest {
			i := slices.Index(switchNames[:], w)
			if i < 0 {
				return p.fail("a switch", w)
			}
			h.Switches |= 1 << i
		}
		return nil
	case "faults":
		for _, w := range rest {
			f, ok := faultfs.ParseFault(w)
			if !ok {
				return p.fail("a fault", w)
			}
			h.Faults |= f.Bit()
		}
		return nil
	case "bucket":
		for _, w := range rest {
			f, ok := fakebucket.ParseFault(w)
			if !ok || f == fakebucket.NoFault {
				return p.fail("a fault of the bucket", w)
			}
			h.Bucket |= f.Bit()
		}
		return nil
	case "server":
		for _, w := range rest {
			f, ok := fakevalkey.ParseFault(w)
			if !ok || f == fakevalkey.NoFault {
				return p.fail("a fault of the server", w)
			}
			h.Server |= f.Bit()
		}
		return nil
	case "node":
		h.Node = true
		return nil
	case "events":
		p.events = true
		return nil
	case "latency", "rates", "refusals", "strikes", "config.0", "config.1":
		for _, w := range rest {
			if err := p.pair(key, w); err != nil {
				return err
			}
		}
		return nil
	}
	return p.fail("a key of the header", key)
}

func (p *parser) scalar(key, word string) error {
	h := &p.s.Header
	if key == "seed" {
		v, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return p.fail("a seed", word)
		}
		h.Seed = v
		return nil
	}
	v, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return p.fail("a number", word)
	}
	switch key {
	case "clients":
		h.Clients = v
	case "replicas":
		h.Replicas = v
	case "persist":
		h.Persist = v
	default:
		h.Capacity = v
	}
	return nil
}

func (p *parser) pair(key, word string) error {
	name, text, ok := strings.Cut(word, "=")
	v, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return p.fail("name=number", word)
	}
	h := &p.s.Header
	switch key {
	case "latency":
		switch name {
		case "write":
			h.Write = v
		case "sync":
			h.Sync = v
		default:
			return p.fail("write or sync", name)
		}
	case "rates":
		op, ok := parseOp(name)
		if !ok || v < 0 || v > 65535 {
			return p.fail("call=rate, 0..65535", word)
		}
		h.Rates[op] = uint16(v)
	case "strikes":
		f, ok := fakevalkey.ParseFault(name)
		if !ok || v < 0 || v > 65535 {
			return p.fail("fault=rate, 0..65535", word)
		}
		h.Strikes[f] = uint16(v)
	case "refusals":
		op := fakebucket.Op(0)
		for op < fakebucket.OpCount && op.String() != name {
			op++
		}
		if op == fakebucket.OpCount || v < 0 || v > 65535 {
			return p.fail("call=rate, 0..65535", word)
		}
		h.Refusals[op] = uint16(v)
	default:
		i := int(key[len(key)-1] - '0')
		at := slices.IndexFunc(configKeys, func(k configKey) bool { return k.name == name })
		if at < 0 {
			return p.fail("a key of the configuration", name)
		}
		if configKeys[at].put(&h.Config[i], v); configKeys[at].at(&h.Config[i]) != v {
			return p.fail("a value that fits "+name, text)
		}
		p.seen[i] = true
	}
	return nil
}

func parseOp(name string) (faultfs.Op, bool) {
	for op := range faultfs.OpCount {
		if op.String() == name {
			return op, true
		}
	}
	return 0, false
}

func (p *parser) event(words []string) error {
	if len(p.s.Events) == eventsMax {
		return p.fail("at most 65536 events", words[0])
	}
	at, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || at < 0 || at > 1e15 {
		return p.fail("a time, ns", words[0])
	}
	if n := len(p.s.Events); n > 0 && at < p.s.Events[n-1].At {
		return p.fail("a time not before the event above", words[0])
	}
	if len(words) < 2 {
		return p.fail("a kind of event", "the end of the line")
	}
	kind := slices.Index(kindNames[:], words[1])
	if kind < 0 {
		return p.fail("a kind of event", words[1])
	}
	e := Event{Kind: Kind(kind), At: at}
	for _, w := range words[2:] {
		if err := p.arg(&e, w); err != nil {
			return err
		}
	}
	if e.Kind == Arm && !faultfs.CallFaults(faultfs.Op(e.B)).Has(faultfs.Fault(e.A)) {
		return p.fail("a fault that can strike that call", strings.Join(words[2:], " "))
	}
	if e.Kind == Append {
		if p.bytes += e.A; p.bytes > bytesMax {
			return p.fail(fmt.Sprintf("payloads of at most %d bytes together", bytesMax), "more")
		}
	}
	p.s.Events = append(p.s.Events, e)
	return nil
}

func (p *parser) arg(e *Event, word string) error {
	name, text, _ := strings.Cut(word, "=")
	if name == "sub" {
		sub, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return p.fail("sub=hex", word)
		}
		e.Sub = sub
		return nil
	}
	if name == "client" {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 || v >= clientsMax {
			return p.fail("client 0..7", word)
		}
		e.Client = uint8(v)
		return nil
	}
	i := slices.Index(argNames[e.Kind][:], name)
	if i < 0 || name == "" {
		return p.fail("an argument of "+e.Kind.String(), name)
	}
	v, ok := parseValue(e.Kind, i, text)
	if !ok {
		return p.fail("name=number, or a word for it", word)
	}
	if limit := argMax(e.Kind, i); v < 0 || v > limit {
		return p.fail(fmt.Sprintf("%s of 0..%d", name, limit), text)
	}
	*e.arg(i) = v
	return nil
}

// argMax bounds an argument, so that a hostile schedule can neither exhaust memory nor run long.
func argMax(k Kind, i int) int64 {
	switch {
	case k == Append:
		return [4]int64{1 << 16, 64, contentCount - 1, producersMax}[i]
	case k == Retry:
		return producersMax - 1
	case (k == Read || k == Trim || k == FindTime || k == Rot) && i == 0:
		return 1000
	case k == Read || k == Poll || k == Rot:
		return 1 << 20
	case k == Restart && i == 0:
		return 1
	case k == Restart && i == 2:
		return livesMax
	case k == Crash && i == 0, k == Doom && i == 1:
		return deathCount - 1
	case k == Doom && i == 2:
		return savesMax
	case k == Crash && (i == 1 || i == 3), k == Doom:
		return 1 << 24
	case k == Arm:
		return [4]int64{int64(faultfs.FaultCount) - 1, int64(faultfs.OpCount) - 1, 1 << 16, 0}[i]
	case k == Clock && i == 0:
		return clockJumps - 1
	case k == Slow && i == 0:
		return int64(core.LaneCount) - 1
	case k == Offload, k == Spoil && i == 0:
		return 1000
	case k == Spoil && i == 1:
		return spoilCount - 1
	case k == Server && i == 0:
		return serverCount - 1
	case k == Server:
		return fakevalkey.ReplicasMax - 1
	case k == Outage:
		return outageCount - 1
	case k >= TopicCreate && i == 0:
		return topicsMax - 1
	case k == TopicConfigure:
		return int64(len(configurations)) - 1
	case k == TopicCreate || k == TopicGrow:
		return partitionsMax
	case k >= TopicCreate && i == 1:
		return partitionsMax - 1
	case k == Produce:
		return [4]int64{2: 1<<18 - 1, 3: producersMax}[i]
	case k == Fetch:
		return [4]int64{2: 1001, 3: 1 << 20}[i]
	case k == DeleteRecords:
		return 1001
	case k == EpochEnds:
		return 1 << 16
	}
	return 1e14 // durations: a day
}
