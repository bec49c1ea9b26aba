package main

type repairCommand struct{}

func (repairCommand) Run() error { return nil }
