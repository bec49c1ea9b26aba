package broker

import "varve/core/topics"

// AutoCreate reports whether topics are created as soon as somebody asks for them.
func (b *Broker) AutoCreate() bool { return b.options.AutoCreate }

// CheckConfig says what of a topic's configuration cannot be, and changes nothing.
func (b *Broker) CheckConfig(config map[string]string) error {
	return topics.CheckConfig(pairs(config), b.tiered)
}
