package main

import (
	"errors"
	"strings"
)

// served reports whether this program has what a configuration names: a command that needs the whole
// log asks first, and touches nothing if not.
func (s *tierSettings) served() error {
	const next = "; take the key out to work with the local disk alone, or run: varve config explain"
	switch {
	case s.warm():
		return errors.New("warm.endpoints: this program cannot serve the warm tier (Valkey) yet" + next)
	case s.cold():
		scheme, _, _ := strings.Cut(s.ColdURL, ":")
		return errors.New("cold.url: this program cannot serve the cold tier of " + scheme + ":// yet" + next)
	}
	return nil
}
