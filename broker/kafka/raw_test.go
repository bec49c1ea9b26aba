package kafka_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// raw speaks to a node byte by byte, in whatever version a test wants.
type raw struct {
	t  testing.TB
	nc net.Conn
	id int32
}

func (n *node) raw() *raw {
	n.t.Helper()
	nc, err := net.Dial("tcp", n.addr)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	return &raw{t: n.t, nc: nc}
}

// frame encodes a request as it goes over the wire.
func frame(req kmsg.Request, id int32) []byte {
	f := kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw"))
	return f.AppendRequest(nil, req, id)
}

// send sends a request and does not wait.
func (r *raw) send(req kmsg.Request, version int16) {
	r.t.Helper()
	req.SetVersion(version)
	r.id++
	if _, err := r.nc.Write(frame(req, r.id)); err != nil {
		r.t.Fatal(err)
	}
}

// receive reads the next answer and decodes it as one of that request.
func (r *raw) receive(req kmsg.Request, id int32) (kmsg.Response, error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r.nc, prefix[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(prefix[:])-4)
	if _, err := io.ReadFull(r.nc, body); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(prefix[4:])); got != id {
		return nil, fmt.Errorf("answer to request %d, want %d", got, id)
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != 18 {
		if body[0] != 0 {
			return nil, fmt.Errorf("tags in a header: %x", body)
		}
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		return nil, fmt.Errorf("%w: %x", err, body)
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, body) {
		return nil, fmt.Errorf("version %d of key %d: received\n%x, which is\n%x", req.GetVersion(), req.Key(), body, again)
	}
	return resp, nil
}

// ask sends a request and returns its answer.
func (r *raw) ask(req kmsg.Request, version int16) kmsg.Response {
	r.t.Helper()
	r.send(req, version)
	resp, err := r.receive(req, r.id)
	if err != nil {
		r.t.Fatalf("%s version %d: %v", kmsg.NameForKey(req.Key()), version, err)
	}
	return resp
}
