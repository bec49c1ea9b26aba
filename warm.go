package varve

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"varve/core"
	"varve/tiers/disk"
	"varve/tiers/valkey"
	"varve/tiers/warm"
)

// WarmOptions configure the warm tier: one stream in a Valkey server. The zero value of every field but
// Dialer and Name is its default.
type WarmOptions struct {
	Dialer valkey.Dialer // opens connections to the server, such as one of package client; nil: no warm tier
	Name   string        // of the log: its key is varve:{Name}, which belongs to this log alone

	Replicas     int           // an ack waits for so many replicas; default 1, negative: none
	Wait         time.Duration // and so long; default 100 ms
	AckOnTimeout bool          // then it is acked all the same; else its outcome is unknown

	MaxBytes int64 // the stream holds at most about so many bytes of the log; default: no limit of its own
	Segments int   // and so many closed segments; default 5, negative: none
}

// Bounds of what is read from a server: an entry may have been written under other options.
const (
	warmEntryLeast = 64 << 20
	warmHeaderMost = 1 << 20
	warmPageBytes  = 8 << 20
	warmTimeout    = 10 * time.Second
)

// warmBatchMost is the most that fits into an entry: a server takes texts of up to 512 MiB.
const warmBatchMost = 512<<20 - 2*warmHeaderMost

// config fills in the core's numbers.
func (o *WarmOptions) config(c *core.Config) {
	c.Warm = o.Dialer != nil
	set(&c.WarmReplicas, o.Replicas)
	c.WarmReplicas = max(c.WarmReplicas, 0)
	set(&c.WarmWait, int64(o.Wait))
	c.WarmAckOnTimeout = o.AckOnTimeout
	set(&c.WarmBytes, o.MaxBytes)
	set(&c.WarmSegments, o.Segments)
	c.WarmSegments = max(c.WarmSegments, 0)
}

// validate names the first option whose value cannot work; the core has judged the numbers.
func (o *WarmOptions) validate(c *core.Config) error {
	if o.Dialer == nil {
		return nil
	}
	if _, err := valkey.Key(o.Name); err != nil {
		return &core.ConfigError{Key: "warm.name", Value: shortened(o.Name), Want: err.Error()}
	}
	if c.MaxBatchBytes > warmBatchMost {
		return &core.ConfigError{Key: "max_batch_bytes", Value: c.MaxBatchBytes, Want: "at most 510 MiB with a warm tier: one entry of it takes no more"}
	}
	return nil
}

// shortened returns a name as a message may show it.
func shortened(name string) string {
	if len(name) > 80 {
		return name[:80] + "..."
	}
	return name
}

// open returns the store of the warm tier; it opens no connection.
func (o *WarmOptions) open(files *disk.Store, c *core.Config) (*warm.Store, *links, error) {
	stream, l, err := o.stream(c)
	if err != nil {
		return nil, nil, err
	}
	side, err := valkey.New(o.Name, l, o.bounds(c))
	return warm.NewStore(stream, side, files), l, err
}

// stream returns the store of the stream alone.
func (o *WarmOptions) stream(c *core.Config) (*valkey.Store, *links, error) {
	l := &links{dialer: o.Dialer, end: make(chan struct{}), open: make(map[*link]struct{})}
	stream, err := valkey.New(o.Name, l, o.bounds(c))
	return stream, l, err
}

func (o *WarmOptions) bounds(c *core.Config) valkey.Bounds {
	return valkey.Bounds{
		EntryBytes: max(warmEntryLeast, c.WarmEntryBytes+c.MaxBatchBytes) + warmHeaderMost,
		PageBytes:  warmPageBytes, Timeout: int64(warmTimeout),
	}
}

// links are the connections of a warm tier, which end all at once when the log is closed: a WAIT, or a
// server that does not answer, keeps nobody then.
type links struct {
	dialer valkey.Dialer
	end    chan struct{}

	mu    sync.Mutex
	ended bool
	open  map[*link]struct{}
}

// link is one connection.
type link struct {
	valkey.Conn
	of   *links
	once sync.Once
	err  error
}

var errCut = errors.New("varve: the log is closed")

// Dial implements valkey.Dialer. A dial that the end of the links overtakes ends on its own.
func (l *links) Dial(key string) (valkey.Conn, error) {
	type dialled struct {
		conn valkey.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		conn, err := l.dialer.Dial(key)
		if err == nil {
			if conn, err = l.add(conn); err != nil { // nobody waits for it any more
				conn = nil
			}
		}
		done <- dialled{conn, err}
	}()
	select {
	case d := <-done:
		return d.conn, d.err
	case <-l.end:
		return nil, errCut
	}
}

// add takes a connection in, or closes it if the end has come.
func (l *links) add(c valkey.Conn) (valkey.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = c.Close()
		return nil, errCut
	}
	n := &link{Conn: c, of: l}
	l.open[n] = struct{}{}
	return n, nil
}

// Close implements valkey.Conn.
func (n *link) Close() error {
	n.of.mu.Lock()
	delete(n.of.open, n)
	n.of.mu.Unlock()
	n.once.Do(func() { n.err = n.Conn.Close() })
	return n.err
}

// cut ends every connection, and those that would come. It does not wait.
func (l *links) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.end)
	for n := range l.open {
		go func() { _ = n.Close() }()
	}
}

// warmReport is what was logged of the warm tier.
type warmReport struct {
	fails      int    // completions in a row after which it had not answered
	unsafe     uint32 // what was found of the server
	unmirrored *core.UnmirroredError
	stalled    bool
	waives     bool // Options.Warm.AckOnTimeout
}

// reportWarm logs that the warm tier has ceased to answer, or answers again, and what makes it unsafe.
// The mutex is held.
func (l *Log) reportWarm() {
	r := &l.warmFails
	unsafe, failure := l.core.WarmTrouble() // after each mirror: not all of Stats
	if unsafe != r.unsafe {
		r.unsafe = unsafe
		valkey.Findings(unsafe).Each(func(f valkey.Finding) {
			l.logger.Warn("varve: the warm tier may lose what it confirmed", "dir", l.name, "finding", f.String())
		})
	}
	switch lost := (*core.UnmirroredError)(nil); {
	case l.core.Phase() == core.Failed || l.core.Phase() == core.Closed:
	case errors.As(failure, &lost):
		if r.fails = 0; lost != r.unmirrored {
			l.logger.Error("varve: what is damaged on disk will not be in the warm tier: appends that waited for that end with an unknown outcome",
				"dir", l.name, "error", lost)
		}
		r.unmirrored = lost
	case failure != nil:
		if r.fails++; r.fails == tierFailsMax {
			s := l.core.Stats()
			mirrored, lag := any(s.WarmEnd), any(s.WarmLagBytes)
			if p := l.core.Phase(); p == core.Opening || p == core.Recovering { // it was not asked yet
				mirrored, lag = "unknown", "unknown"
			}
			l.logger.Warn("varve: the warm tier does not answer as it should", "dir", l.name, "error", failure, "mirrored", mirrored, "lag_bytes", lag)
		}
	case r.fails >= tierFailsMax:
		l.logger.Info("varve: the warm tier answers again", "dir", l.name)
		fallthrough
	default:
		r.fails = 0
	}
}

// reportStall logs that what is written waits too long for the warm tier, or does not any more. The mutex
// is held.
func (l *Log) reportStall() {
	stalled := l.core.WarmStalled()
	if stalled == l.warmFails.stalled {
		return
	}
	l.warmFails.stalled = stalled
	if !stalled {
		l.logger.Info("varve: the warm tier has caught up", "dir", l.name, "committed", l.core.Committed())
		return
	}
	s := l.core.Stats()
	cause := cmp.Or(s.WarmError, errBehind)
	text := "varve: appends are refused until the warm tier has caught up"
	if l.warmFails.waives {
		text = "varve: appends are acked without the warm tier until it has caught up"
	}
	l.logger.Error(text, "dir", l.name, "error", cause, "mirrored", s.WarmEnd, "lag_bytes", s.WarmLagBytes)
}

// errBehind is why appends wait for a warm tier that answers, and takes less than is appended.
var errBehind = errors.New("it has confirmed nothing for as long as warm.wait_timeout_ms says")
