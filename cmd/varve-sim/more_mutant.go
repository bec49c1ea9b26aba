//go:build mutant

package main

type moreCommands struct{}
