package main

type checkCommand struct{}

func (checkCommand) Run() error { return nil }
