package client_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"varve/tiers/tiertest"
	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
)

// newServer starts a server alone, which keeps nothing.
func newServer(t *testing.T, settings ...string) *tiertest.Process {
	t.Helper()
	return tiertest.StartValkey(t, append([]string{"save "}, settings...)...)
}

func newStore(t *testing.T, d valkey.Dialer) *valkey.Store {
	t.Helper()
	s, err := valkey.New("a", d, valkey.Bounds{EntryBytes: 1 << 20, PageBytes: 1 << 20, Timeout: 5_000_000_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestOptions(t *testing.T) {
	for _, o := range []client.Options{
		{},
		{Addresses: []string{"localhost"}},
		{Addresses: []string{"localhost:"}},
		{Addresses: []string{"redis://localhost:1"}},
		{Addresses: []string{"a:1", "b:1"}},
		{Addresses: []string{"a:1"}, Cluster: true, MasterSet: "m"},
	} {
		if _, err := client.New(o); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Nobody there: an error that names the operation, the key and the address, in time.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	for _, o := range []client.Options{
		{Addresses: []string{addr}},
		{Addresses: []string{addr}, Cluster: true},
		{Addresses: []string{addr, addr}, MasterSet: "m"},
	} {
		err := newStore(t, dialer(t, o)).Probe(&valkey.Probe{})
		if err == nil || !strings.Contains(err.Error(), "valkey: probe of varve:{a}: valkey: connect to "+addr) {
			t.Errorf("%+v: %v", o, err)
		}
		if sentinels := o.MasterSet != ""; sentinels != errors.Is(err, client.ErrNoPrimary) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Somebody who takes connections and says nothing.
func TestSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, secret := range []*tls.Config{nil, {}} {
		began := time.Now()
		d := dialer(t, client.Options{Addresses: []string{l.Addr().String()}, ConnectTimeout: 200 * time.Millisecond, TLS: secret})
		if err := newStore(t, d).Probe(&valkey.Probe{}); err == nil || time.Since(began) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	}
}

// A replica, where the primary was meant.
func TestReplicaIsRefused(t *testing.T) {
	p := newPair(t)
	d := dialer(t, client.Options{Addresses: []string{p.replica.Addr}})
	if err := newStore(t, d).Probe(&valkey.Probe{}); !errors.Is(err, client.ErrNoPrimary) {
		t.Errorf("%v", err)
	}
}

func TestCredentials(t *testing.T) {
	p := newServer(t, "requirepass secret", "user alice on >wonder ~varve:* +@all", "user bob on >blunder ~other:* +@all")
	for _, c := range []struct {
		user, password string
		good           bool
	}{
		{"", "secret", true},
		{"default", "secret", true},
		{"alice", "wonder", true},
		{"", "", false},
		{"", "guess", false},
		{"alice", "secret", false},
		{"bob", "blunder", false}, // may not touch our keys
		{"nobody", "wonder", false},
	} {
		d := dialer(t, client.Options{Addresses: []string{p.Addr}, Username: c.user, Password: c.password})
		err := newStore(t, d).Probe(&valkey.Probe{})
		if c.good && err != nil || !c.good && !errors.Is(err, client.ErrDenied) {
			t.Errorf("%q %q: %v", c.user, c.password, err)
		}
		if err != nil && c.password != "" && strings.Contains(err.Error(), c.password) {
			t.Errorf("the password is in %q", err)
		}
	}
}

// certificate writes a certificate for 127.0.0.1 and its key, and returns the pool that trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return pool
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	file := func(name string) string { return filepath.Join(dir, name) }
	p := newServer(t, "port 0", "tls-port PORT", "tls-cert-file "+file("cert.pem"), "tls-key-file "+file("key.pem"),
		"tls-ca-cert-file "+file("cert.pem"), "tls-auth-clients no")
	for _, c := range []struct {
		name string
		tls  *tls.Config
		good bool
	}{
		{"trusted", &tls.Config{RootCAs: pool}, true},
		{"unknown authority", &tls.Config{}, false},
		{"another name", &tls.Config{RootCAs: pool, ServerName: "example.org"}, false},
		{"none", nil, false},
	} {
		d := dialer(t, client.Options{Addresses: []string{p.Addr}, TLS: c.tls, ConnectTimeout: 2 * time.Second})
		if err := newStore(t, d).Probe(&valkey.Probe{}); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What a real server says about itself, and what of it is unsafe.
func TestFindings(t *testing.T) {
	for _, c := range []struct {
		settings []string
		replicas int
		want     valkey.Findings
	}{
		{[]string{"save ", "appendonly yes", "appendfsync always"}, 0, 0},
		{[]string{"save ", "appendonly yes", "appendfsync always"}, 1, 1 << valkey.FewReplicas},
		{[]string{"save ", "appendonly yes", "appendfsync everysec"}, 0, 1 << valkey.LateFsync},
		{[]string{"save "}, 0, 1 << valkey.Unpersisted},
		{[]string{"save 60 1"}, 0, 1 << valkey.Snapshots},
		{[]string{"save ", "maxmemory 100mb", "maxmemory-policy allkeys-lru"}, 0, 1<<valkey.Unpersisted | 1<<valkey.Evicts},
		{[]string{"save ", "rename-command CONFIG "}, 0, 1 << valkey.Unsaid},
	} {
		p := tiertest.StartValkey(t, c.settings...)
		b := valkey.Probe{Replicas: c.replicas}
		if err := newStore(t, dialer(t, client.Options{Addresses: []string{p.Addr}})).Probe(&b); err != nil {
			t.Fatal(err)
		}
		if b.Findings != c.want || b.Server.Name != "valkey" || b.Server.Role != "master" || b.Server.Version == "" {
			t.Errorf("%q: %+v: %v", c.settings, b.Server, b.Findings)
		}
	}
}
