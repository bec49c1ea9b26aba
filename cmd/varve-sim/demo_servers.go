//go:build !mutant

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"

	"varve"
	"varve/tiers"
	"varve/tiers/s3"
	"varve/tiers/s3/s3test"
	"varve/tiers/valkey"
	"varve/tiers/valkey/client"
	"varve/tiers/valkey/valkeytest"
)

// demoServers are what stands behind the warm and the cold tier.
type demoServers struct {
	said    string // of them
	warm    varve.WarmOptions
	replica string // its address; "": there is none
	bucket  tiers.Bucket
	stops   []func()
}

// What the log and its bucket are called there.
const (
	demoLog    = "orders"
	demoBucket = "demo"
)

// demoWait is how long an append waits for a replica: a busy machine is slow, and that is no claim here.
const demoWait = 10 * time.Second

func (s *demoServers) stop() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

// embedded starts servers in this process.
func (s *demoServers) embedded(ctx context.Context) error {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return err
	}
	s.stops = append(s.stops, m.Close)
	valkeytest.Mend(m, nil)
	d, err := demoDialer(m.Addr())
	if err != nil {
		return err
	}
	s.mirror(d, -1)
	h, err := s3test.Gofakes3(demoBucket)
	if err != nil {
		return err
	}
	s.said = "in this process: miniredis as the Valkey, without a replica; gofakes3 as the S3 (--real starts real servers)"
	return s.open(ctx, "http://127.0.0.1", s3test.Client{Handler: h})
}

// mirror sets the warm tier, which keeps more than the disk will.
func (s *demoServers) mirror(d valkey.Dialer, replicas int) {
	s.warm = varve.WarmOptions{Dialer: d, Name: demoLog, Replicas: replicas, Wait: demoWait, Segments: 10}
}

func demoDialer(address string) (valkey.Dialer, error) {
	return client.New(client.Options{Addresses: []string{address}})
}

// Keys of the S3 servers.
const demoAccess, demoSecret = "demo-access", "demo-secret"

func (s *demoServers) open(ctx context.Context, endpoint string, c s3.HTTPClient) (err error) {
	s.bucket, err = s3.Open(ctx, s3.Options{
		Bucket: demoBucket, Endpoint: endpoint, Region: "us-east-1", PathStyle: true,
		AccessKey: demoAccess, SecretKey: demoSecret, HTTPClient: c,
	})
	return err
}

// demoTools are the programs of the real servers.
type demoTools struct{ valkey, gateway string }

// findDemoTools looks where .ci/run puts versitygw, too. The error names all that is missing.
func findDemoTools() (t demoTools, err error) {
	var missing []string
	if t.valkey, err = exec.LookPath("valkey-server"); err != nil {
		missing = append(missing, "valkey-server in PATH (package valkey-server)")
	}
	if t.gateway, err = exec.LookPath("versitygw"); err != nil {
		cache, _ := os.UserCacheDir()
		if t.gateway, err = exec.LookPath(filepath.Join(cache, "varve-ci", "bin", "versitygw")); err != nil {
			missing = append(missing, "versitygw in PATH (go install github.com/versity/versitygw/cmd/versitygw@latest)")
		}
	}
	if len(missing) > 0 {
		return t, fmt.Errorf("--real needs %s: not found; .ci/run provide installs what is missing", strings.Join(missing, ", and "))
	}
	return t, nil
}

// real starts a Valkey server, one replica of it and an S3 server, on free ports of the loopback interface.
func (s *demoServers) real(ctx context.Context, tools demoTools, root string) error {
	primary, err := s.valkey(ctx, tools, filepath.Join(root, "valkey-primary"))
	if err != nil {
		return err
	}
	host, port, _ := strings.Cut(primary, ":")
	replica, err := s.valkey(ctx, tools, filepath.Join(root, "valkey-replica"), "--replicaof", host, port)
	if err != nil {
		return err
	}
	d, err := demoDialer(primary)
	if err != nil {
		return err
	}
	s.replica = replica
	s.mirror(d, 1)
	var p valkey.Probe
	if err := await(ctx, "a replica that follows", func() (bool, error) {
		err := demoProbe(d, &p)
		return p.Server.Replicas == 1, err
	}); err != nil {
		return err
	}
	endpoint, err := s.gateway(ctx, tools, filepath.Join(root, "s3"))
	if err != nil {
		return err
	}
	s.said = fmt.Sprintf("started: valkey-server %s at %s, its replica at %s, versitygw at %s", p.Server.Version, primary, replica, endpoint)
	transport := &http.Transport{}
	s.stops = append(s.stops, transport.CloseIdleConnections)
	return s.open(ctx, "http://"+endpoint, &http.Client{Transport: transport})
}

// demoProbe looks at the stream of the log in a server.
func demoProbe(d valkey.Dialer, p *valkey.Probe) error {
	s, err := valkey.New(demoLog, d, valkey.Bounds{EntryBytes: 64 << 20, PageBytes: 1 << 20, Timeout: int64(demoWait)})
	if err != nil {
		return err
	}
	return errors.Join(s.Probe(p), s.Close())
}

// newestOfReplica returns the newest entry that the replica has, as the server sends it.
func (s *demoServers) newestOfReplica(ctx context.Context) (string, error) {
	key, err := valkey.Key(demoLog)
	if err != nil {
		return "", err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.replica) // client opens connections to primaries alone
	if err != nil {
		return "", err
	}
	text := ""
	if err = c.SetDeadline(time.Now().Add(demoWait)); err == nil {
		text, err = proto.NewClient(c).Do("XREVRANGE", key, "+", "-", "COUNT", "1")
	}
	return text, errors.Join(err, c.Close())
}

// valkey starts a Valkey server that persists what it takes.
func (s *demoServers) valkey(ctx context.Context, tools demoTools, dir string, more ...string) (address string, err error) {
	if address, err = freeAddress(ctx); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	host, port, _ := strings.Cut(address, ":")
	return address, s.start(ctx, address, exec.CommandContext(ctx, tools.valkey, append([]string{
		"--port", port, "--bind", host, "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
		"--repl-diskless-sync-delay", "0",
	}, more...)...))
}

// gateway starts an S3 server with an empty bucket.
func (s *demoServers) gateway(ctx context.Context, tools demoTools, dir string) (address string, err error) {
	if address, err = freeAddress(ctx); err != nil {
		return "", err
	}
	data, side := filepath.Join(dir, "data"), filepath.Join(dir, "side")
	if err := errors.Join(os.MkdirAll(filepath.Join(data, demoBucket), 0o700), os.MkdirAll(side, 0o700)); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, tools.gateway, "--port", address, "--quiet", "--keep-alive", "posix", "--sidecar", side, data)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+demoAccess, "ROOT_SECRET_KEY="+demoSecret)
	return address, s.start(ctx, address, cmd)
}

// start starts a server and waits until it listens. It ends with the demo, however that ends.
func (s *demoServers) start(ctx context.Context, address string, cmd *exec.Cmd) error {
	name := filepath.Base(cmd.Path)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	s.stops = append(s.stops, func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	return await(ctx, name+" that listens on "+address, func() (bool, error) {
		select {
		case <-ended:
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			return false, fmt.Errorf("%s ended by itself: %v: %s", name, cmd.ProcessState, lines[len(lines)-1])
		default:
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, c.Close()
	})
}

// freeAddress returns a loopback address that nobody listened on just now.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// awaitMost bounds a wait of the demo.
const awaitMost = 30 * time.Second

// await waits until something holds.
func await(ctx context.Context, what string, holds func() (bool, error)) error {
	for end := time.Now().Add(awaitMost); ; {
		done, err := holds()
		switch {
		case err != nil:
			return err
		case done:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("waited %v for %s", awaitMost, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}
