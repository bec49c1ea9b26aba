package main

type dumpCommand struct{}

func (dumpCommand) Run() error { return nil }
