package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"varve"
	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
)

// warmTier is the warm tier of a configuration, for one log. Without one there is no Dialer.
type warmTier struct {
	options varve.WarmOptions
	place   string // of the log's stream, in messages
	down    error  // it did not answer just now
}

// warmReach is how long a server may take to accept a connection.
const warmReach = 3 * time.Second

// openWarm makes the warm tier ready for the log in a directory. Who means to write has it checked first.
func (s *tierSettings) openWarm(ctx context.Context, dir string, use access) (*warmTier, error) {
	if !s.warm() {
		return &warmTier{}, nil
	}
	name, key, err := s.warmKey(dir)
	if err != nil {
		return nil, err
	}
	o, err := s.warmServers()
	if err != nil {
		return nil, err
	}
	d, err := client.New(o)
	if err != nil {
		return nil, fmt.Errorf("warm.endpoints: %w", err)
	}
	t := &warmTier{options: s.warmOptions(name, d), place: strings.Join(s.WarmEndpoints, ", ") + " " + key}
	if use == looks {
		return t, nil
	}
	t.down = probe(d, name)
	if t.down != nil && !warmOutage(t.down) {
		return nil, fmt.Errorf("warm.endpoints: %w%s", t.down, warmNext(t.down))
	}
	return t, ctx.Err()
}

// warmKey returns what the log in a directory is called in the warm tier, and the key of its stream.
func (s *tierSettings) warmKey(dir string) (name, key string, err error) {
	place := placeInNode(dir)
	if name = s.WarmName; name == "" {
		if place != nil {
			dir = place.node
		}
		full, err := filepath.Abs(dir)
		if err != nil {
			return "", "", err
		}
		name = filepath.Base(full)
	}
	if place != nil {
		if name, err = place.inWarm(name); err != nil {
			return "", "", err
		}
	}
	if key, err = valkey.Key(name); err != nil {
		err = fmt.Errorf("the log cannot be called so in the warm tier: %w; set warm.name", err)
	}
	return name, key, err
}

// warmOptions translates settings; what is zero there, and a default of the library, is said otherwise.
func (s *tierSettings) warmOptions(name string, d valkey.Dialer) varve.WarmOptions {
	o := varve.WarmOptions{
		Dialer: d, Name: name, Replicas: s.WarmWaitReplicas, Wait: time.Duration(s.WarmWaitTimeout) * time.Millisecond,
		AckOnTimeout: s.WarmOnWaitTimeout == waitAck, Segments: s.WarmMaxCachedClosedSegments, MaxBytes: int64(s.WarmMaxBytes),
	}
	if o.Replicas == 0 {
		o.Replicas = -1
	}
	if o.Segments == 0 {
		o.Segments = -1
	}
	o.MaxBytes = max(o.MaxBytes, 0)
	return o
}

// warmServers says where the servers are, and how to talk to them.
func (s *tierSettings) warmServers() (client.Options, error) {
	o := client.Options{
		Addresses: s.WarmEndpoints, Cluster: s.WarmServers == serversCluster, MasterSet: s.WarmSentinelMaster, ConnectTimeout: warmReach,
		Username: s.WarmUsername, SentinelUsername: s.WarmSentinelUsername,
	}
	var err error
	if o.Password, err = password("warm.password_file", s.WarmPasswordFile); err != nil {
		return o, err
	}
	if o.SentinelPassword, err = password("warm.sentinel_password_file", s.WarmSentinelPasswordFile); err != nil {
		return o, err
	}
	if s.WarmTLS {
		o.TLS, err = s.warmTLS()
	}
	return o, err
}

// passwordMax bounds a file with a password.
const passwordMax = 4096

// password reads a file that holds a password and nothing else.
func password(key, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	b, err := readAtMost(filepath.Dir(path), filepath.Base(path), passwordMax+1)
	b = bytes.TrimRight(b, "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", key, err)
	case len(b) == 0 || len(b) > passwordMax || bytes.ContainsAny(b, "\r\n\x00"):
		return "", fmt.Errorf("%s: %s: expected one line with a password, found something else", key, path)
	}
	return string(b), nil
}

// warmTLS reads the certificates.
func (s *tierSettings) warmTLS() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.WarmTLSCAFile != "" {
		b, err := os.ReadFile(s.WarmTLSCAFile)
		if err != nil {
			return nil, fmt.Errorf("warm.tls_ca_file: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("warm.tls_ca_file: %s: expected certificates in PEM, found none", s.WarmTLSCAFile)
		}
	}
	if s.WarmTLSCertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.WarmTLSCertFile, s.WarmTLSKeyFile)
		if err != nil {
			return nil, fmt.Errorf("warm.tls_cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// probe asks the warm tier for anything at all.
func probe(d valkey.Dialer, name string) error {
	s, err := valkey.New(name, d, valkey.Bounds{EntryBytes: 1 << 30, PageBytes: 1, Timeout: int64(checkTimeout)})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // nothing was written
	if err = s.Probe(&valkey.Probe{}); errors.As(err, new(*valkey.TypeError)) {
		return nil // the open says what to do
	}
	return err
}

// removeWarm removes what a log left in the warm tier.
func (s *tierSettings) removeWarm(dir string) error {
	if !s.warm() {
		return nil
	}
	_, key, err := s.warmKey(dir)
	if err != nil {
		return err
	}
	o, err := s.warmServers()
	if err != nil {
		return err
	}
	d, err := client.New(o)
	if err != nil {
		return err
	}
	c, err := d.Dial(key)
	if err != nil {
		return err
	}
	var p valkey.Pipeline
	p.Reset(int64(checkTimeout), 4096)
	p.Command("DEL").Key(key)
	return errors.Join(c.Do(&p), c.Close())
}

// warmOutage reports whether an error says that the warm tier does not answer now, rather than that it
// never will with this configuration.
func warmOutage(err error) bool {
	return !warmDenied(err) && !errors.Is(err, valkey.ErrProtocol) && !errors.As(err, new(*tls.CertificateVerificationError)) &&
		!errors.As(err, new(tls.RecordHeaderError)) && !errors.As(err, new(x509.HostnameError)) && !errors.As(err, new(x509.UnknownAuthorityError))
}

// warmDenied reports whether the server refuses the credentials, or a command to the user.
func warmDenied(err error) bool {
	var answer *valkey.ServerError
	return errors.Is(err, client.ErrDenied) || errors.As(err, &answer) && answer.Outcome == valkey.Denied
}

// warmNext says what to do about an error that stays.
func warmNext(err error) string {
	switch {
	case warmDenied(err):
		return "; set warm.username and warm.password_file, or give the user its commands and keys"
	case errors.Is(err, valkey.ErrProtocol):
		return "; expected a Valkey server there, with TLS if warm.tls is true"
	}
	return "; set warm.tls and warm.tls_ca_file as the server has it"
}

// named says of a refusal which key it is about, and of an error that stays what to do.
func (t *warmTier) named(err error) error {
	if warmDenied(err) {
		return fmt.Errorf("%w%s", err, warmNext(err))
	}
	if r := (*varve.RefusedError)(nil); errors.As(err, &r) && r.Name == "warm" {
		return fmt.Errorf("%s: %w", t.place, err)
	}
	return err
}

// unconfirmed says of an append that ended with an unknown outcome, or was refused, what the warm tier has
// to do with it.
func (s *tierSettings) unconfirmed(x *varve.Stats, err error) error {
	if !s.warm() || x.Poisoned || !errors.Is(err, varve.ErrUnknown) && !errors.Is(err, varve.ErrTierDown) {
		return err
	}
	why := ""
	if x.WarmError != nil {
		why = ": " + oneLine(x.WarmError)
	}
	return fmt.Errorf("%w; the warm tier did not confirm in warm.wait_timeout_ms (%d)%s", err, s.WarmWaitTimeout, why)
}
