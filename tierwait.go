package varve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"varve/core"
)

// awaitOpen waits until recovery has come to an end, one way or the other.
func (l *Log) awaitOpen(ctx context.Context, tierWait time.Duration) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if l.cold != nil || l.warm != nil {
		go l.watchTiers(ctx, tierWait, tierSlow, giveUp)
	}
	err := l.await(ctx, func() (bool, error) {
		switch l.phase {
		case core.Opening:
			return false, nil
		case core.Failed, core.Closed:
			return true, l.core.Err()
		case core.Recovering:
			if l.core.Plan().New { // nothing to serve meanwhile
				return true, ErrNoSpace
			}
		}
		return true, nil
	})
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// tierSlow is after how long a tier that does not answer is worth a line.
var tierSlow = 3 * time.Second

// watchTiers says after slow that an open waits for a tier, and ends it after wait; 0: never.
func (l *Log) watchTiers(ctx context.Context, wait, slow time.Duration, giveUp context.CancelCauseFunc) {
	often := time.NewTicker(slow / 8)
	defer often.Stop()
	for said := false; ; {
		select {
		case <-often.C:
		case <-ctx.Done():
			return
		}
		now := l.enter()
		asked, s := l.asked, l.core.Stats()
		l.mu.Unlock()
		silent, cause := time.Duration(now.Mono-asked), cmp.Or(s.ColdError, s.WarmError, errNoAnswer)
		switch {
		case asked == 0:
		case wait > 0 && silent > wait:
			giveUp(fmt.Errorf("%w: %w", ErrTierDown, cause))
			return
		case silent > slow && !said:
			said = true
			l.logger.Warn("varve: the open waits for a tier that does not answer as it should", "dir", l.name, "error", cause)
		}
	}
}

var errNoAnswer = errors.New("no answer yet")
