//go:build !mutant

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// killed is what a child said before it was killed.
type killed struct {
	acked  map[int64]string // value by offset
	begun  int              // records that were handed to the log
	flying int              // of which the outcome was not reported
}

// killedWithin bounds how long a child may take to get as far as it has to.
const killedWithin = 20 * time.Second

// kill starts a writer, waits until it has reported so many acks, and kills it with SIGKILL right
// after it has begun another record.
func (c *demoWriterCommand) kill(ctx context.Context, acks int) (*killed, error) {
	ctx, cancel := context.WithTimeout(ctx, killedWithin)
	defer cancel()
	cmd, err := self(ctx, "demo-writer", "--dir="+c.Dir, "--fsync="+c.Fsync, fmt.Sprintf("--writers=%d", c.Writers),
		fmt.Sprintf("--life=%d", c.Life), fmt.Sprintf("--segment=%d", c.Segment))
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k, shot, listenErr := c.listen(out, acks, cmd.Process.Kill)
	if listenErr != nil {
		_ = cmd.Process.Kill()
	}
	waitErr := cmd.Wait()
	switch {
	case listenErr != nil:
		return nil, listenErr
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the writer reported only %d acks: %w", len(k.acked), ctx.Err())
	case !shot:
		return nil, fmt.Errorf("the writer ended by itself: %w", waitErr)
	case cmd.ProcessState.ExitCode() != -1:
		return nil, errors.New("the writer ended before SIGKILL did its work")
	}
	return k, nil
}

// listen takes down what a writer says until it ends, and shoots when it is time to.
func (c *demoWriterCommand) listen(out io.Reader, acks int, shoot func() error) (k *killed, shot bool, err error) {
	k = &killed{acked: map[int64]string{}}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var word string
		var writer, n int
		var offset int64
		fields, _ := fmt.Sscan(lines.Text(), &word, &writer, &n, &offset)
		switch {
		case word == "begin" && fields == 3:
			k.begun++
			k.flying++
			if len(k.acked) >= acks && !shot {
				shot = true
				if err := shoot(); err != nil {
					return k, shot, err
				}
			}
		case word == "ack" && fields == 4:
			k.flying--
			if _, twice := k.acked[offset]; twice {
				return k, shot, fmt.Errorf("offset %d was acked twice", offset)
			}
			k.acked[offset] = string(demoValue(c.Life, writer, n))
		default:
			return k, shot, fmt.Errorf("the writer said %q", lines.Text())
		}
	}
	return k, shot, lines.Err()
}
