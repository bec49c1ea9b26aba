package broker

import (
	"log/slog"

	"varve"
	"varve/tiers"
)

// Options configure a node. The zero value of every field is its default.
type Options struct {
	// Log is what every partition's log is opened with, as far as its topic does not set it. Create,
	// Existing, the tiers, Budget and Logger are the node's; PendingBytes is for all partitions together.
	Log varve.Options
	// Tiers returns the tiers of a partition; nil: the disk alone. What it returns must differ between
	// incarnations of a topic, so that none ever finds what another left. Incarnation 0 is none: then only
	// whether there are tiers counts.
	Tiers func(topic string, incarnation uint64, partition int32) (cold tiers.Bucket, prefix string, warm varve.WarmOptions)

	Partitions    int32 // of a topic that is created without a number; default 1
	AutoCreate    bool  // topics are created as soon as somebody asks for them
	PartitionsMax int32 // of the node; default 4096, or what the limit of open files allows

	// Opening is called with the node when Open begins, so that somebody can ask Ready meanwhile.
	Opening func(*Broker)

	Logger *slog.Logger // default: nothing is logged
}

func (o *Options) defaults() {
	if o.Partitions == 0 {
		o.Partitions = 1
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
