package varve_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"varve"
)

// tempDir stands for the directory of a log.
func tempDir() string {
	dir, err := os.MkdirTemp("", "varve-example-")
	if err != nil {
		panic(err)
	}
	return dir
}

// A log is a directory. An append returns when its records are on the device.
func Example() {
	ctx, dir := context.Background(), tempDir()
	defer os.RemoveAll(dir)

	log, err := varve.Open(ctx, dir, varve.Options{})
	if err != nil {
		panic(err)
	}
	defer log.Close(ctx)

	span, err := log.Append(ctx, // one indivisible batch
		varve.Record{Key: []byte("a"), Value: []byte("first")},
		varve.Record{Key: []byte("b"), Value: []byte("second")})
	if err != nil {
		panic(err)
	}
	fmt.Println("appended", span.First, "to", span.End)

	for r, err := range log.Records(ctx, varve.Position{}) {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d %s=%s\n", r.Offset, r.Key, r.Value)
	}
	// Output:
	// appended 0 to 2
	// 0 a=first
	// 1 b=second
}

// Follow goes on where history ends and waits for more.
func ExampleLog_Follow() {
	ctx, dir := context.Background(), tempDir()
	defer os.RemoveAll(dir)
	log, err := varve.Open(ctx, dir, varve.Options{})
	if err != nil {
		panic(err)
	}
	defer log.Close(ctx)

	appended := make(chan error)
	go func() {
		for i := range 3 {
			if _, err := log.Append(ctx, varve.Record{Value: fmt.Appendf(nil, "record %d", i)}); err != nil {
				appended <- err
			}
		}
		appended <- nil
	}()

	following, stop := context.WithCancel(ctx)
	defer stop()
	for r, err := range log.Follow(following, varve.Position{}) {
		if errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(string(r.Value))
		if r.Offset == 2 {
			stop()
		}
	}
	if err := <-appended; err != nil {
		panic(err)
	}
	// Output:
	// record 0
	// record 1
	// record 2
}

// A consumer keeps the position behind the last record that it handled, and goes on from there in
// a later life. The epoch in it tells whether that record is still the one it saw.
func ExampleRecord_Position() {
	ctx, dir := context.Background(), tempDir()
	defer os.RemoveAll(dir)
	log, err := varve.Open(ctx, dir, varve.Options{})
	if err != nil {
		panic(err)
	}
	if _, err := log.Append(ctx, varve.Record{Value: []byte("a")}, varve.Record{Value: []byte("b")}, varve.Record{Value: []byte("c")}); err != nil {
		panic(err)
	}
	var saved varve.Position
	for r, err := range log.Records(ctx, saved) {
		if err != nil {
			panic(err)
		}
		fmt.Println("handled", string(r.Value))
		saved = r.Position()
		if r.Offset == 1 {
			break
		}
	}
	log.Close(ctx)

	if log, err = varve.Open(ctx, dir, varve.Options{}); err != nil {
		panic(err)
	}
	defer log.Close(ctx)
	for r, err := range log.Records(ctx, saved) {
		var diverged *varve.DivergedError
		if errors.As(err, &diverged) {
			panic("a power loss took records that this consumer had seen") // not under OnCommit
		}
		if err != nil {
			panic(err)
		}
		fmt.Println("handled", string(r.Value), "after the restart")
	}
	// Output:
	// handled a
	// handled b
	// handled c after the restart
}

// An unknown outcome is settled by opening the log again and looking, or by a producer sequence,
// which makes repeating harmless.
func ExampleLog_AppendBatch() {
	ctx, dir := context.Background(), tempDir()
	defer os.RemoveAll(dir)
	log, err := varve.Open(ctx, dir, varve.Options{})
	if err != nil {
		panic(err)
	}
	defer log.Close(ctx)

	batch := varve.EncodeRecords(nil, varve.Record{Value: []byte("payment 17")})
	batch.Producer = &varve.Producer{ID: 1, Epoch: 0, Sequence: 0}
	send := func() (varve.Span, error) {
		pending, err := log.AppendBatch(batch)
		if err != nil {
			return varve.Span{}, err
		}
		return pending.Wait(ctx)
	}
	span, err := send()
	if err == nil {
		err = varve.ErrUnknown // say that the answer was lost
	}
	if errors.Is(err, varve.ErrUnknown) {
		span, err = send() // and send it again
	}
	fmt.Println(span, err)
	fmt.Println("records:", log.Committed())
	// Output:
	// {0 1} <nil>
	// records: 1
}

// A reader below Start learns where the log begins now.
func ExampleTrimmedError() {
	ctx, dir := context.Background(), tempDir()
	defer os.RemoveAll(dir)
	log, err := varve.Open(ctx, dir, varve.Options{})
	if err != nil {
		panic(err)
	}
	defer log.Close(ctx)
	for i := range 5 {
		if _, err := log.Append(ctx, varve.Record{Value: fmt.Appendf(nil, "record %d", i)}); err != nil {
			panic(err)
		}
	}
	if err := log.Trim(ctx, 3); err != nil {
		panic(err)
	}
	from := varve.Position{Offset: 1}
	for again := true; again; {
		again = false
		for r, err := range log.Records(ctx, from) {
			var trimmed *varve.TrimmedError
			if errors.As(err, &trimmed) {
				fmt.Println("offset", trimmed.Requested, "is gone, going on at", trimmed.Start)
				from, again = varve.Position{Offset: trimmed.Start}, true
				break
			}
			if err != nil {
				panic(err)
			}
			fmt.Println(string(r.Value))
		}
	}
	// Output:
	// offset 1 is gone, going on at 3
	// record 3
	// record 4
}
