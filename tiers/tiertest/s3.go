package tiertest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// S3 is a real S3 server with a bucket.
type S3 struct {
	Endpoint, Bucket, AccessKey, SecretKey string

	address string
	dir     string
	binary  string
	server  *exec.Cmd
	out     bytes.Buffer
}

// StartS3 starts an S3 server for a test: versitygw over a temporary directory. With VARVE_S3_ENDPOINT
// it takes the server there, with VARVE_S3_BUCKET, VARVE_S3_ACCESS_KEY and VARVE_S3_SECRET_KEY. It skips
// the test where there is neither.
func StartS3(t testing.TB) *S3 {
	t.Helper()
	if endpoint := os.Getenv("VARVE_S3_ENDPOINT"); endpoint != "" {
		return &S3{
			Endpoint: endpoint, Bucket: os.Getenv("VARVE_S3_BUCKET"),
			AccessKey: os.Getenv("VARVE_S3_ACCESS_KEY"), SecretKey: os.Getenv("VARVE_S3_SECRET_KEY"),
		}
	}
	s := &S3{Bucket: "varve-test", AccessKey: "varve-access", SecretKey: "varve-secret", binary: findTool("versitygw")}
	if s.binary == "" {
		Lacks(t, "versitygw in PATH or ~/.cache/varve-ci/bin, where .ci/run puts it, or VARVE_S3_ENDPOINT", exec.ErrNotFound)
	}
	s.dir = t.TempDir()
	for _, dir := range []string{"data/" + s.Bucket, "side"} {
		no(t, os.MkdirAll(filepath.Join(s.dir, dir), 0o700))
	}
	s.address = freeAddress(t)
	s.Endpoint = "http://" + s.address
	t.Cleanup(s.Kill)
	s.Start(t)
	return s
}

// findTool returns the path of a program, "" if it is neither in PATH nor where CI keeps its tools.
func findTool(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	path, err := exec.LookPath(filepath.Join(cache, "varve-ci", "bin", name))
	if err != nil {
		return ""
	}
	return path
}

// freeAddress returns a loopback address that nobody listened on just now.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	no(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Start starts a server that was killed, with what it had stored.
func (s *S3) Start(t testing.TB) {
	t.Helper()
	s.out.Reset()
	s.server = exec.CommandContext(context.Background(), s.binary, "--port", s.address, "--quiet", "--keep-alive", // ends with Kill
		"posix", "--sidecar", filepath.Join(s.dir, "side"), filepath.Join(s.dir, "data"))
	s.server.Dir = s.dir
	s.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that panics cleans nothing up
	s.server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
	s.server.Stdout, s.server.Stderr = &s.out, &s.out
	no(t, s.server.Start())
	for range 500 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Endpoint, nil)
		no(t, err)
		if answer, err := http.DefaultClient.Do(req); err == nil {
			_ = answer.Body.Close()
			http.DefaultClient.CloseIdleConnections()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Kill()
	t.Fatalf("%s does not answer on %s:\n%s", s.binary, s.address, s.out.String())
}

// Kill kills the server, if the test started one.
func (s *S3) Kill() {
	if s.server == nil {
		return
	}
	_ = s.server.Process.Kill()
	_ = s.server.Wait()
	s.server = nil
}
