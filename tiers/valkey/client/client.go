// Package client binds the command seam of package valkey to the client library valkey-go: a server
// alone, a cluster, or a primary found by sentinels, with TLS and credentials.
//
// Each connection has a client of the library to itself, and of that one dedicated connection. The
// library's retries are off; a dedicated connection is never opened again by the library, and is not
// sent elsewhere. Both are checked all the same: the server is asked for the id of the connection at the
// begin and at the end of each pipeline. Sentinels are asked anew for each connection, and the primary
// that they name whether it is one.
//
// Replies are judged before the library sees them: it makes room for any length that a server states,
// and panics at a reply that nobody asked for.
package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	library "github.com/valkey-io/valkey-go"

	"varve/tiers/valkey"
)

// Options say how to reach the servers.
type Options struct {
	Addresses []string // host:port of a server, of nodes of a cluster, or of sentinels
	Cluster   bool     // the addresses are nodes of a cluster
	MasterSet string   // the addresses are sentinels, and this is the name of what they watch

	Username, Password                 string
	SentinelUsername, SentinelPassword string

	TLS            *tls.Config   // nil: no TLS
	ConnectTimeout time.Duration // 0: 5 seconds
	EntryBytesMax  int64         // longest text in a reply; 0: 512 MiB, the most that a server takes
}

// Dialer opens connections. It implements valkey.Dialer, and may be shared.
type Dialer struct{ options Options }

// ErrDenied says that the server refuses the credentials, or wants some.
var ErrDenied = errors.New("credentials refused")

const (
	connectTimeout = 5 * time.Second
	entryBytesMax  = 512 << 20
)

// New checks the options. It opens no connection.
func New(o Options) (*Dialer, error) {
	if len(o.Addresses) == 0 {
		return nil, errors.New("valkey: no address: expected host:port of a server, of nodes of a cluster, or of sentinels")
	}
	for _, a := range o.Addresses {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			return nil, fmt.Errorf("valkey: address %.80q: expected host:port", a)
		}
	}
	if o.Cluster && o.MasterSet != "" {
		return nil, errors.New("valkey: the addresses are nodes of a cluster or sentinels, not both")
	}
	if len(o.Addresses) > 1 && !o.Cluster && o.MasterSet == "" {
		return nil, errors.New("valkey: several addresses: expected a cluster, or the name of a primary that they watch as sentinels")
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = connectTimeout
	}
	if o.EntryBytesMax == 0 {
		o.EntryBytesMax = entryBytesMax
	}
	return &Dialer{o}, nil
}

// Dial opens a connection to the primary, or to the shard that holds the key.
func (d *Dialer) Dial(key string) (valkey.Conn, error) {
	o := &d.options
	addresses := o.Addresses
	if o.MasterSet != "" {
		primary, err := d.askSentinels()
		if err != nil {
			return nil, refused(addresses, err)
		}
		addresses = []string{primary}
	}
	c, err := d.open(addresses, o.Cluster, o.Username, o.Password)
	if err != nil {
		return nil, refused(addresses, err)
	}
	if err := c.hello(key, o.ConnectTimeout); err != nil {
		_ = c.Close()
		return nil, refused(addresses, err)
	}
	return c, nil
}

// open makes a client of the library, with one connection that is its own.
func (d *Dialer) open(addresses []string, cluster bool, username, password string) (*conn, error) {
	g := &guard{longest: d.options.EntryBytesMax}
	g.allow(helloBytes)
	c, err := library.NewClient(library.ClientOption{
		InitAddress: addresses, ForceSingleClient: !cluster,
		Username: username, Password: password, TLSConfig: d.options.TLS,
		Dialer:       net.Dialer{Timeout: d.options.ConnectTimeout, KeepAlive: 30 * time.Second},
		DialCtxFn:    g.dial,
		DisableRetry: true, DisableCache: true, AlwaysRESP2: true,
		PipelineMultiplex: -1, ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 64 << 10,
	})
	if err != nil {
		g.close()
		if c != nil {
			c.Close()
		}
		return nil, err
	}
	only, _ := c.Dedicate() // Close says why it is not given back
	return &conn{guard: g, client: c, only: only, id: newID()}, nil
}

// refused says where nobody could be reached, and why.
func refused(addresses []string, err error) error {
	where := strings.Join(addresses, ", ")
	for _, word := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "invalid password", "AUTH"} {
		if strings.Contains(err.Error(), word) {
			return fmt.Errorf("valkey: connect to %s: %w: %w", where, ErrDenied, err)
		}
	}
	return fmt.Errorf("valkey: connect to %s: %w", where, err)
}

// ErrNoPrimary says that no sentinel knows the primary, or that what it knows is none.
var ErrNoPrimary = errors.New("no primary found")

// askSentinels returns the address of the primary.
func (d *Dialer) askSentinels() (string, error) {
	o := &d.options
	var last error
	for _, sentinel := range o.Addresses {
		c, err := d.open([]string{sentinel}, false, o.SentinelUsername, o.SentinelPassword)
		if err != nil {
			last = err
			continue
		}
		address, err := c.primaryOf(o.MasterSet, o.ConnectTimeout)
		_ = c.Close()
		if err == nil {
			return address, nil
		}
		last = err
	}
	return "", fmt.Errorf("%w: sentinels asked for %q: %w", ErrNoPrimary, o.MasterSet, last)
}
