package main

import (
	"net"
	"net/netip"
	"strconv"
	"time"
)

// nodeSettings are all keys: those of a log, and those of a node that serves many.
type nodeSettings struct {
	settings
	serveSettings
}

// Validate refuses values and combinations that cannot work, as settings.Validate does.
func (s *nodeSettings) Validate() error {
	if err := s.settings.Validate(); err != nil {
		return err
	}
	return s.serveSettings.Validate()
}

// serveSettings are the keys that only serve uses.
type serveSettings struct {
	Dir            string        `name:"dir" env:"VARVE_DIR" default:"varve-data" placeholder:"D" help:"Directory of the node; an absent or empty one becomes a new node."`
	Listen         string        `name:"listen" env:"VARVE_LISTEN" default:"127.0.0.1:9092" placeholder:"HOST:PORT" help:"Where Kafka clients connect; port 0: a free one."`
	Advertise      string        `name:"advertise" env:"VARVE_ADVERTISE" placeholder:"HOST:PORT" help:"The address that clients are told to connect to; default: that of listen."`
	Admin          string        `name:"admin" env:"VARVE_ADMIN" default:"127.0.0.1:9644" placeholder:"HOST:PORT|off" help:"Where /metrics, /healthz and /readyz are; off: nowhere."`
	AllowPlaintext bool          `name:"allow-plaintext" env:"VARVE_ALLOW_PLAINTEXT" default:"false" help:"Listen on other addresses than loopback ones, although whoever reaches them may read, write and delete."`
	Pprof          bool          `name:"pprof" env:"VARVE_PPROF" default:"false" help:"Serve profiles below /debug/pprof/ of the admin address."`
	DrainTimeout   time.Duration `name:"drain-timeout" env:"VARVE_DRAIN_TIMEOUT" default:"10s" placeholder:"T" help:"How long a stop waits for requests that have begun, and for a clean close."`
	AutoCreate     bool          `name:"auto-create" env:"VARVE_AUTO_CREATE" default:"true" negatable:"" help:"A topic that a client asks for and that is not there is created."`
	Partitions     int           `name:"partitions" env:"VARVE_PARTITIONS" default:"1" placeholder:"N" help:"Partitions of a topic that is created without a count."`
	PartitionsMax  int           `name:"partitions-max" env:"VARVE_PARTITIONS_MAX" default:"4096" placeholder:"N" help:"Partitions of all topics of the node, at most; the default is less where few files may be open."`
}

// adminOff is the value of admin that switches it off.
const adminOff = "off"

// partitionsDefault is the default of partitions_max.
const partitionsDefault = 4096

// partitionsLimit bounds partitions_max: each partition is a log with files, buffers and goroutines.
const partitionsLimit = 1_000_000

// Validate refuses values and combinations that cannot work.
func (s *serveSettings) Validate() error {
	if s.Dir == "" {
		return unfit("dir", strconv.Quote(s.Dir), "a directory")
	}
	if err := s.validateAddress("listen", s.Listen); err != nil {
		return err
	}
	if s.Admin != adminOff {
		if err := s.validateAddress("admin", s.Admin); err != nil {
			return err
		}
	}
	switch host, port, err := net.SplitHostPort(s.Advertise); {
	case s.Advertise == "" && anywhere(s.Listen):
		return unfit("advertise", strconv.Quote(s.Advertise), "the address that clients reach the node by, as listen is every address of the host")
	case s.Advertise != "" && (err != nil || host == "" || !validPort(port) || anywhere(s.Advertise)):
		return unfit("advertise", strconv.Quote(s.Advertise), "host:port")
	}
	switch {
	case s.Pprof && s.Admin == adminOff:
		return unfit("pprof", true, "false where admin is off")
	case s.Admin == s.Listen && !s.freePort(s.Listen):
		return unfit("admin", strconv.Quote(s.Admin), "another address than listen")
	case s.DrainTimeout <= 0 || s.DrainTimeout > time.Hour:
		return unfit("drain_timeout", s.DrainTimeout, "above 0, up to an hour")
	case s.PartitionsMax < 1 || s.PartitionsMax > partitionsLimit:
		return unfit("partitions_max", s.PartitionsMax, "1 to "+strconv.Itoa(partitionsLimit))
	case s.Partitions < 1 || s.Partitions > s.PartitionsMax:
		return unfit("partitions", s.Partitions, "1 to partitions_max ("+strconv.Itoa(s.PartitionsMax)+")")
	}
	return nil
}

// validateAddress checks an address to listen on. Without TLS and passwords only this host may reach it,
// unless somebody said that he knows.
func (s *serveSettings) validateAddress(key, address string) error {
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strconv.FormatUint(n, 10) != port {
		want := "host:port"
		if key == "admin" {
			want += ", or off"
		}
		return unfit(key, strconv.Quote(address), want)
	}
	if !loopback(host) && !s.AllowPlaintext {
		return unfit(key, strconv.Quote(address), "an address of this host alone, such as 127.0.0.1:"+port+
			", because there is neither TLS nor a password and whoever reaches it may read, write and delete; or allow_plaintext")
	}
	return nil
}

// loopback reports whether only this host reaches an address.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// anywhere reports whether an address stands for all that the host has: none to tell a client.
func anywhere(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.Unmap().IsUnspecified()
}

func (*serveSettings) freePort(address string) bool {
	_, port, _ := net.SplitHostPort(address)
	return port == "0"
}
