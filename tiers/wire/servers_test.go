package wire_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"varve/sim"
	"varve/tiers/s3"
	"varve/tiers/s3/s3test"
	"varve/tiers/valkey/valkeytest"
)

// stream is the Valkey server: miniredis, with a hook before its commands.
type stream struct {
	mini *miniredis.Miniredis

	mu       sync.Mutex
	cut      int // so many commands from now on the connection is lost; 0: it is not
	full     int // so many writes from now on are refused
	replicas int // that WAIT counts: miniredis has none, and counts none
	frozen   bool

	cuts, refused, short int
}

func newStream(t *testing.T) *stream {
	t.Helper()
	s := &stream{mini: miniredis.RunT(t)}
	valkeytest.Mend(s.mini, s.before)
	return s
}

// before strikes a command. What a connection sent that is lost has no effect: a server may still carry
// it out, but then nobody could say what a schedule does.
func (s *stream) before(c *server.Peer, cmd string, _ ...string) bool {
	if c.Closed() {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut > 0 {
		if s.cut--; s.cut == 0 {
			s.cuts++
			c.Close()
			return true
		}
	}
	switch {
	case cmd == "WAIT" && s.frozen:
		s.short++
		c.WriteInt(0)
		return true
	case cmd == "WAIT":
		c.WriteInt(s.replicas)
		return true
	case cmd == "XADD" && s.full > 0:
		s.full--
		s.refused++
		c.WriteError("OOM command not allowed when used memory > 'maxmemory'.")
		return true
	}
	return false
}

// strike makes the next commands fail.
func (s *stream) strike(cut, full int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut, s.full = cut, full
}

func (s *stream) freeze(frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
}

// calm ends what is struck. The function that it returns puts it back.
func (s *stream) calm() (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cut, full := s.cut, s.full
	s.cut, s.full = 0, 0
	return func() { s.strike(cut, full) }
}

// restart breaks every connection; the server has what it had, as with appendfsync always.
func (s *stream) restart(t *testing.T) {
	t.Helper()
	s.mini.Close()
	if err := s.mini.Restart(); err != nil {
		t.Fatal(err)
	}
	valkeytest.Mend(s.mini, s.before)
}

// begin empties the server for a schedule.
func (s *stream) begin(replicas int) {
	s.mini.FlushAll()
	s.strike(0, 0)
	s.freeze(false)
	s.replicas = replicas
}

// objects is the S3 server: gofakes3, behind a handler that makes requests fail.
type objects struct {
	direct, sockets *s3.Bucket // without a socket, and over one
	next            http.Handler

	mu    sync.Mutex
	rng   sim.Rand
	rate  uint32 // of requests that fail, in 65536
	down  bool
	calls int
	ends  int // uploads in parts that were to end
	hit   [strikes]int
}

// What happens to a request.
const (
	before500 = iota
	before503
	beforeCut // the connection is lost
	after500  // it took effect
	afterCut
	halfBody // the answer breaks off
	strikes
)

var strikeNames = [strikes]string{"500", "503", "cut", "500 after effect", "cut after effect", "half a body"}

func newObjects(t *testing.T) *objects {
	t.Helper()
	o := new(objects)
	o.begin(t, 0)
	web := httptest.NewServer(o)
	t.Cleanup(web.Close)
	options := s3.Options{
		Bucket: "wire", PathStyle: true, Region: "us-east-1", AccessKey: "access", SecretKey: "secret", Endpoint: web.URL,
	}
	var err error
	if o.sockets, err = s3.Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	options.HTTPClient = direct{o}
	if o.direct, err = s3.Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	return o
}

// begin empties the server for a schedule.
func (o *objects) begin(t *testing.T, seed uint64) {
	t.Helper()
	next, err := s3test.Gofakes3("wire")
	if err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next, o.rate, o.down = next, 0, false
	o.rng.Seed(seed)
}

// hurt makes so many of 65536 requests fail, or all.
func (o *objects) hurt(rate uint32, down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rate, o.down = rate, down
}

// calm ends that. The function that it returns puts it back.
func (o *objects) calm() (back func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	rate, down := o.rate, o.down
	o.rate, o.down = 0, false
	return func() { o.hurt(rate, down) }
}

// draw says what happens to a request, -1: nothing.
func (o *objects) draw(r *http.Request) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
		o.ends++
	}
	how := -1
	switch {
	case o.down:
		how = int(o.rng.Below(beforeCut + 1))
	case o.rng.Chance(o.rate):
		how = int(o.rng.Below(strikes))
	}
	if how >= 0 {
		o.hit[how]++
	}
	return how
}

// ServeHTTP strikes a request, or passes it on. A handler that panics so breaks its connection.
func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	how := o.draw(r)
	switch how {
	case before500:
		http.Error(w, "", http.StatusInternalServerError)
		return
	case before503:
		http.Error(w, "<Error><Code>SlowDown</Code></Error>", http.StatusServiceUnavailable)
		return
	case beforeCut:
		panic(http.ErrAbortHandler)
	}
	out := httptest.NewRecorder()
	o.next.ServeHTTP(out, r)
	body := out.Body.Bytes()
	switch {
	case how == after500:
		http.Error(w, "", http.StatusInternalServerError)
		return
	case how == afterCut, how == halfBody && len(body) == 0:
		panic(http.ErrAbortHandler)
	}
	for name, values := range out.Header() {
		w.Header()[name] = values
	}
	if r.Method != http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(out.Code)
	if how == halfBody {
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

// direct sends requests without a socket.
type direct struct{ o *objects }

// Do implements s3.HTTPClient.
func (d direct) Do(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // that very one
				panic(p)
			}
			answer, err = nil, errCut
		}
	}()
	return s3test.Client{Handler: d.o}.Do(r)
}

// timeout bounds what no server here takes: it would only be reached by one that hangs.
const timeout = 30 * time.Second
