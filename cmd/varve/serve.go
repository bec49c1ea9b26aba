package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"varve/broker"
	"varve/broker/admin"
	"varve/broker/kafka"
)

type serveCommand struct {
	configFlag
	nodeSettings
}

// Validate checks the settings.
func (c *serveCommand) Validate() error { return c.nodeSettings.Validate() }

// Run serves until it is interrupted.
func (c *serveCommand) Run(ctx context.Context, s *streams) (err error) {
	logged := slog.New(slog.NewTextHandler(noteWriter{s}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n := &node{serveCommand: c, out: s, failed: make(chan error, 2), log: logged}
	if err := n.listen(); err != nil {
		return err
	}
	defer n.free()
	if err := n.open(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil // interrupted before anybody was served
		}
		return err
	}
	n.note()
	select {
	case <-ctx.Done():
	case err = <-n.failed:
	}
	return errors.Join(err, n.drain(ctx))
}

// node is a running node.
type node struct {
	*serveCommand
	out *streams
	log *slog.Logger

	clients, keepers net.Listener // keepers is nil without an admin address
	failed           chan error   // a server ended by itself

	tiers  *nodeTiers
	broker *broker.Broker
	kafka  *kafka.Server
	admin  *admin.Server
	took   time.Duration // of the open
}

// listen takes the addresses, before anything else is done: if another process has them, nothing has
// happened.
func (n *node) listen() (err error) {
	if n.clients, err = listenOn("listen", n.Listen); err != nil {
		return err
	}
	if n.Admin == adminOff {
		return nil
	}
	if n.keepers, err = listenOn("admin", n.Admin); err != nil {
		_ = n.clients.Close()
		return err
	}
	n.admin = admin.NewServer(admin.Options{Pprof: n.Pprof})
	go n.serve("admin", n.keepers, n.admin.Serve)
	return nil
}

func listenOn(key, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: another process has %s; end it (ss -ltnp says which), or give another address with --%s", key, address, key)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}

// serve runs a server; if it ends by itself, so does the node.
func (n *node) serve(what string, l net.Listener, serve func(net.Listener) error) {
	if err := serve(l); err != nil && !errors.Is(err, kafka.ErrServerClosed) {
		n.failed <- fmt.Errorf("%s %s: %w", what, l.Addr(), err)
	}
}

// open opens the node and begins to serve clients.
func (n *node) open(ctx context.Context) (err error) {
	began := time.Now()
	if n.tiers, err = n.openNodeTiers(ctx, n.out); err != nil {
		return err
	}
	o := broker.Options{
		Log: n.options(), Partitions: int32(n.Partitions), AutoCreate: n.AutoCreate, PartitionsMax: int32(n.PartitionsMax), Logger: n.log,
	}
	if o.PartitionsMax == partitionsDefault {
		o.PartitionsMax = 0 // the default is less where few files may be open
	}
	if n.warm() || n.cold() {
		o.Tiers = n.tiers.of
	}
	if n.admin != nil {
		o.Opening = n.admin.Open
	}
	if n.broker, err = broker.Open(ctx, n.Dir, o); err != nil {
		return named(n.Dir, err)
	}
	n.took = time.Since(began)
	k := kafka.Options{Logger: n.log}
	k.Host, k.Port = n.advertised()
	n.kafka = kafka.NewServer(n.broker, k)
	if n.admin != nil {
		n.admin.Kafka(n.kafka.Stats)
	}
	go n.serve("listen", n.clients, n.kafka.Serve)
	return nil
}

// named says of an error which directory it is about, unless it does so itself.
func named(dir string, err error) error {
	if strings.Contains(err.Error(), dir) {
		return err
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// advertised is what clients are told to connect to; nothing means what they have connected to already.
func (n *node) advertised() (host string, port int32) {
	host, text, err := net.SplitHostPort(n.Advertise)
	if err != nil {
		return "", 0 // it is not set: Validate has looked at it
	}
	number, _ := strconv.ParseUint(text, 10, 16)
	return host, int32(number)
}

// note says what is served, and what an acknowledgement means.
func (n *node) note() {
	topics := n.broker.Topics()
	var all, offline int
	for _, t := range topics {
		for i := range t.Partitions() {
			all++
			if p, err := t.Partition(i); err == nil && p.Err() != nil {
				offline++
				n.out.note("varve: warning: %s", oneLine(p.Err()))
			}
		}
	}
	text := fmt.Sprintf("serving %s on %s", n.Dir, n.clients.Addr())
	if n.Advertise != "" {
		text += ", advertised as " + n.Advertise
	}
	if n.keepers != nil {
		text += fmt.Sprintf("; admin on http://%s", n.keepers.Addr())
	}
	text += fmt.Sprintf("; %s, %s, opened in %v", count(len(topics), "topic"), count(all, "partition"), n.took.Round(time.Millisecond))
	if offline > 0 {
		text += fmt.Sprintf(", %d of them offline", offline)
	}
	n.out.note("varve: %s; acked when %s", text, ackText(&n.settings))
}

// drain lets requests end that have begun, and closes the node, in the time that there is for it. A
// second signal ends the process at once.
func (n *node) drain(ctx context.Context) error {
	if n.admin != nil {
		n.admin.Stopping()
	}
	if ctx.Err() != nil {
		n.out.note("varve: stopping, for up to %v; another signal ends it at once", n.DrainTimeout)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.DrainTimeout)
	defer cancel()
	err := n.kafka.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		n.out.note("varve: warning: connections were cut: their requests did not end in time")
		err = nil // those have no answer; the node itself can still close cleanly, if it does so at once
		var more context.CancelFunc
		ctx, more = context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
		defer more()
	}
	err = errors.Join(err, n.broker.Close(ctx))
	n.broker = nil
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: did not close in drain_timeout (%v); what was acked is safe, the next start recovers", n.Dir, n.DrainTimeout)
	}
	if err == nil {
		n.out.note("varve: closed cleanly")
	}
	return err
}

// closeGrace is what a close has where the requests took all the time.
const closeGrace = 2 * time.Second

// free gives back what drain did not.
func (n *node) free() {
	_ = n.clients.Close()
	if n.broker != nil {
		closing, cancel := context.WithTimeout(context.Background(), n.DrainTimeout)
		defer cancel()
		_ = n.broker.Close(closing)
	}
	if n.admin != nil {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = n.admin.Shutdown(closing)
	}
	if n.tiers != nil {
		n.tiers.close()
	}
}

// noteWriter prints what is logged as notes are.
type noteWriter struct{ out *streams }

// Write implements io.Writer.
func (w noteWriter) Write(b []byte) (int, error) {
	w.out.note("%s", strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}
