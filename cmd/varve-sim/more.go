//go:build !mutant

package main

// moreCommands are those that no planted bug is run with, and that need most of the module.
type moreCommands struct {
	Exhaust exhaustCommand `cmd:"" help:"Go through every short sequence of operations with every crash, and a second one in recovery."`
	Demo    demoCommand    `cmd:"" help:"Show on a real directory what a log survives. Fails if one of its claims fails."`
	Mutants mutantsCommand `cmd:"" help:"Plant one bug at a time in a copy of the source and measure how often the simulator finds it."`
	Report  reportCommand  `cmd:"" help:"Write one HTML page: a run step by step, with the sectors of its disk, and the overview."`

	MutantTool mutantToolCommand `cmd:"" hidden:""`
	DemoWriter demoWriterCommand `cmd:"" hidden:""`
}
