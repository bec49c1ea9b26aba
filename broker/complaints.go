package broker

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// What is tried again and again fails again and again: a line for each cause and minute says so, however many
// partitions have it.
const (
	complaintPause = time.Minute
	complaintNames = 8    // of other partitions that a line names
	complaintsMax  = 1024 // causes that are remembered; what is more in a minute is not logged
)

// complaints are the errors about partitions that a node has logged.
type complaints struct {
	logger *slog.Logger
	mu     sync.Mutex
	said   map[complaint]*saying
}

// complaint is a line without the partition that it names.
type complaint struct{ what, cause string }

// saying is when it was logged, and for which partitions it was not since.
type saying struct {
	at     time.Time
	others []string
	more   int // beside those
}

// say logs an error of a partition, unless its cause was logged within a minute. name is what the error calls the
// partition's directory.
func (c *complaints) say(now time.Time, what, partition, name string, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := complaint{what, strings.ReplaceAll(cause.Error(), name, "")}
	x := c.said[key]
	if x == nil {
		if len(c.said) >= complaintsMax {
			c.forget(now)
		}
		if len(c.said) >= complaintsMax {
			return
		}
		x = new(saying)
		c.said[key] = x
	}
	if now.Sub(x.at) < complaintPause {
		if len(x.others) < complaintNames {
			x.others = append(x.others, partition)
		} else {
			x.more++
		}
		return
	}
	args := []any{"partition", partition, "cause", cause}
	if len(x.others) > 0 {
		args = append(args, "others", strings.Join(x.others, " "))
	}
	if x.more > 0 {
		args = append(args, "and_more", x.more)
	}
	*x = saying{at: now}
	c.logger.Error(what, args...)
}

// forget makes room: what was last said long ago is new when it comes again.
func (c *complaints) forget(now time.Time) {
	for key, x := range c.said {
		if now.Sub(x.at) >= complaintPause {
			delete(c.said, key)
		}
	}
}
