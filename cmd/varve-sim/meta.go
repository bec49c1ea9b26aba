package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"varve/sim"
)

type metaCmd struct {
	Seeds uint64 `default:"2000" help:"How many seeds."`
	From  uint64 `help:"The first seed."`
	Ops   int    `default:"0" help:"Operations a seed; 0: drawn."`
}

// Run compares, for each seed, the run in a world that ran all seeds before, in a fresh world, and
// in another process under another GOMAXPROCS.
func (c *metaCmd) Run() error {
	var s sim.Schedule
	dirty := sim.NewWorld()
	hashes := make([]uint64, 0, c.Seeds)
	for seed := c.From; seed < c.From+c.Seeds; seed++ {
		sim.Expand(&s, seed, c.Ops)
		hash := dirty.Run(&s).Hash
		hashes = append(hashes, hash)
		fresh := sim.NewWorld()
		if other := fresh.Run(&s).Hash; other != hash {
			return fmt.Errorf("seed %d: hash %016x in a used world, %016x in a fresh one; they part within 64 events after event %d",
				seed, hash, other, parting(dirty.Hashes(), fresh.Hashes()))
		}
	}
	for _, procs := range []int{1, 4} {
		if err := c.elsewhere(procs, hashes); err != nil {
			return err
		}
	}
	fmt.Printf("%d seeds: equal in a used world, in a fresh world, and in two other processes\n", c.Seeds)
	return nil
}

// parting returns the last event at which two runs still agreed.
func parting(a, b []uint64) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return 64 * i
}

// elsewhere compares with another process.
func (c *metaCmd) elsewhere(procs int, hashes []uint64) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "hashes", fmt.Sprintf("--seeds=%d", c.Seeds), fmt.Sprintf("--from=%d", c.From),
		fmt.Sprintf("--ops=%d", c.Ops))
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines, n := bufio.NewScanner(out), 0
	for ; lines.Scan(); n++ {
		hash, err := strconv.ParseUint(lines.Text(), 16, 64)
		if err != nil || n >= len(hashes) {
			return fmt.Errorf("the other process printed %q", lines.Text())
		}
		if hash != hashes[n] {
			return fmt.Errorf("seed %d: hash %016x here, %016x in another process with GOMAXPROCS=%d",
				c.From+uint64(n), hashes[n], hash, procs)
		}
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	if n != len(hashes) {
		return fmt.Errorf("the other process ran %d seeds, want %d", n, len(hashes))
	}
	return nil
}

type hashesCmd struct {
	Seeds uint64
	From  uint64
	Ops   int
}

// Run prints the hash of each seed.
func (c *hashesCmd) Run() error {
	out := bufio.NewWriter(os.Stdout)
	var s sim.Schedule
	w := sim.NewWorld()
	for seed := c.From; seed < c.From+c.Seeds; seed++ {
		sim.Expand(&s, seed, c.Ops)
		fmt.Fprintf(out, "%016x\n", w.Run(&s).Hash)
	}
	return out.Flush()
}
