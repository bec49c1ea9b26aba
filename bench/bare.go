package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// bareRelay is the least that a server can do between a producer and a waiting reader: the goroutine that reads
// a request to produce writes the batch over blocks already written, syncs, and writes both answers, the reader's
// first. It keeps one batch, checks nothing and cannot be opened again. What Varve's node takes beyond it is the
// node's own.
type bareRelay struct {
	listener net.Listener
	client   *kgo.Client
	conns    sync.WaitGroup

	mu     sync.Mutex
	disk   *raw // nil: nothing is written
	end    int64
	last   []byte // the batch before end
	waits  net.Conn
	asked  *kmsg.FetchRequest // of who waits
	answer int32              // its correlation id
}

func openBare(dir string, sync bool) (relay, error) {
	s := &bareRelay{}
	var err error
	if sync {
		if err = os.Mkdir(dir, 0o755); err == nil {
			s.disk, err = openRaw(dir, sectorBytes)
		}
	}
	if err == nil {
		s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, err
	}
	go s.accept()
	s.client, err = newProducer(s.address())
	return s, err
}

func (s *bareRelay) address() string       { return s.listener.Addr().String() }
func (s *bareRelay) producer() *kgo.Client { return s.client }

func (s *bareRelay) commits() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.end)
}

func (s *bareRelay) close() error {
	s.client.Close()
	err := s.listener.Close()
	s.conns.Wait()
	if s.disk != nil {
		err = errors.Join(err, s.disk.close())
	}
	return err
}

func (s *bareRelay) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // it is closed
		}
		s.conns.Go(func() {
			defer c.Close()
			if err := s.serve(c); err != nil {
				fmt.Fprintln(os.Stderr, "bench: bare relay:", err)
			}
		})
	}
}

func (s *bareRelay) serve(c net.Conn) error {
	in := bufio.NewReader(c)
	var frame []byte
	for {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return nil //nolint:nilerr // the client has left
		}
		if n := int(binary.BigEndian.Uint32(length[:])); n > len(frame) {
			frame = make([]byte, n)
		}
		body := frame[:binary.BigEndian.Uint32(length[:])]
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(body)))
		req.SetVersion(int16(binary.BigEndian.Uint16(body[2:])))
		id, name := int32(binary.BigEndian.Uint32(body[4:])), int(int16(binary.BigEndian.Uint16(body[8:])))
		body = body[10+max(name, 0):]
		if req.IsFlexible() {
			body = body[1:] // no tags
		}
		if err := req.ReadFrom(body); err != nil {
			return err
		}
		if err := s.carryOut(c, id, req); err != nil {
			return err
		}
	}
}

// carryOut answers a request; one to fetch what is not there yet waits without a goroutine, and without end.
func (s *bareRelay) carryOut(c net.Conn, id int32, req kmsg.Request) error {
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		return s.produce(c, id, req)
	case *kmsg.FetchRequest:
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(req.Topics) == 1 && req.Topics[0].Partitions[0].FetchOffset >= s.end {
			s.waits, s.answer, s.asked = c, id, req
			return nil
		}
		return s.fetch(c, id, req)
	}
	resp := req.ResponseKind()
	switch r := resp.(type) {
	case *kmsg.ApiVersionsResponse:
		for key, versions := range map[int16][2]int16{0: {3, 11}, 1: {4, 12}, 2: {1, 9}, 3: {0, 12}, 18: {0, 4}, 22: {0, 4}} {
			r.ApiKeys = append(r.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: key, MinVersion: versions[0], MaxVersion: versions[1]})
		}
	case *kmsg.MetadataResponse:
		a := s.listener.Addr().(*net.TCPAddr)
		name := servedName
		r.Brokers = []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "127.0.0.1", Port: int32(a.Port)}}
		r.ControllerID = 1
		r.Topics = []kmsg.MetadataResponseTopic{{Topic: &name, Partitions: []kmsg.MetadataResponseTopicPartition{{
			Leader: 1, Replicas: []int32{1}, ISR: []int32{1},
		}}}}
	case *kmsg.InitProducerIDResponse:
		r.ProducerID = 1
	case *kmsg.ListOffsetsResponse:
		r.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: servedName, Partitions: []kmsg.ListOffsetsResponseTopicPartition{{}}}}
	}
	return reply(c, id, resp)
}

func (s *bareRelay) produce(c net.Conn, id int32, req *kmsg.ProduceRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := &req.Topics[0].Partitions[0]
	s.last = append(s.last[:0], asked.Records...)
	binary.BigEndian.PutUint64(s.last, uint64(s.end)) // the base offset
	if s.disk != nil {
		copy(s.disk.buf, s.last)
		if err := s.disk.commit(); err != nil {
			return err
		}
	}
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(req.Version)
	resp.Topics = []kmsg.ProduceResponseTopic{{Topic: servedName, Partitions: []kmsg.ProduceResponseTopicPartition{{
		Partition: asked.Partition, BaseOffset: s.end, LogAppendTime: -1,
	}}}}
	s.end += int64(binary.BigEndian.Uint32(s.last[23:])) + 1 // the last offset delta
	if s.waits != nil {
		to := s.waits
		s.waits = nil
		if err := s.fetch(to, s.answer, s.asked); err != nil {
			return err
		}
	}
	return reply(c, id, resp)
}

// fetch answers with the last batch.
func (s *bareRelay) fetch(c net.Conn, id int32, req *kmsg.FetchRequest) error {
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(req.Version)
	if len(req.Topics) > 0 {
		p := kmsg.NewFetchResponseTopicPartition()
		p.HighWatermark, p.LastStableOffset, p.RecordBatches = s.end, s.end, s.last
		resp.Topics = []kmsg.FetchResponseTopic{{Topic: servedName, Partitions: []kmsg.FetchResponseTopicPartition{p}}}
	}
	return reply(c, id, resp)
}

func reply(c net.Conn, id int32, resp kmsg.Response) error {
	b := binary.BigEndian.AppendUint32(make([]byte, 4, 512), uint32(id))
	if resp.IsFlexible() && resp.Key() != kmsg.ApiVersions.Int16() {
		b = append(b, 0)
	}
	b = resp.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, err := c.Write(b)
	return err
}
