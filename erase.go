package varve

import (
	"context"
	"errors"
	"fmt"

	"varve/core"
	"varve/tiers"
	"varve/tiers/valkey"
)

// EraseTiers removes what the tiers of a log hold: every object and upload under Options.ColdPrefix, which
// must not be empty, and the stream of Options.Warm. The log is closed, and nobody opens it again: what
// its directory holds is the caller's to remove, afterwards, because without it the log would be rebuilt
// from the tiers. What is gone already is no error.
func EraseTiers(ctx context.Context, o Options) error {
	c := o.config()
	if err := o.validate(&c); err != nil {
		return err
	}
	if o.Cold != nil {
		if o.ColdPrefix == "" {
			return &core.ConfigError{Key: "cold prefix", Value: `""`, Want: "one: without it the whole bucket would be erased"}
		}
		if err := erasePrefix(ctx, o.Cold, o.ColdPrefix); err != nil {
			return fmt.Errorf("varve: cold tier of %s: %w", o.ColdPrefix, err)
		}
	}
	if o.Warm.Dialer == nil {
		return nil
	}
	return o.Warm.run(ctx, &c, (*valkey.Store).Remove)
}

// TiersEmpty reports whether the tiers of a log hold nothing under its prefix and its name.
func TiersEmpty(ctx context.Context, o Options) (bool, error) {
	c := o.config()
	if err := o.validate(&c); err != nil {
		return false, err
	}
	if o.Cold != nil {
		objects, err := o.Cold.List(ctx, o.ColdPrefix, "", 1)
		if err != nil || len(objects) > 0 {
			return false, err
		}
	}
	if o.Warm.Dialer == nil {
		return true, nil
	}
	var look valkey.Probe
	err := o.Warm.run(ctx, &c, func(s *valkey.Store) error { return s.Probe(&look) })
	return look.Entries == 0 && look.LastID.IsZero(), err
}

// erasePrefix deletes objects from the first on, so that the list may be read again after a failure.
func erasePrefix(ctx context.Context, b tiers.Bucket, prefix string) error {
	for {
		uploads, err := b.Uploads(ctx, prefix)
		if err != nil {
			return err
		}
		for _, u := range uploads {
			if err := b.Abort(ctx, u.Key, u.ID); err != nil {
				return err
			}
		}
		objects, err := b.List(ctx, prefix, "", tiers.PageMax)
		if err != nil {
			return err
		}
		for _, x := range objects {
			if err := b.Delete(ctx, x.Key); err != nil {
				return err
			}
		}
		if len(uploads) < tiers.PageMax && len(objects) < tiers.PageMax {
			return nil
		}
	}
}

// run runs an operation on the stream, which ends with the context.
func (o *WarmOptions) run(ctx context.Context, c *core.Config, operation func(*valkey.Store) error) error {
	store, links, err := o.stream(c)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- errors.Join(operation(store), store.Close()) }()
	select {
	case err = <-done:
		links.cut()
		return err
	case <-ctx.Done():
		links.cut() // which ends the operation
		<-done
		return ctx.Err()
	}
}
