package main

type benchCommand struct{}

func (benchCommand) Run() error { return nil }
