package main

import "errors"

type demoCmd struct{}

// Run shows the demo.
func (c *demoCmd) Run() error { return errors.New("demo: not built yet") }
