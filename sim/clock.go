package sim

import "varve/core"

// clock is the virtual time of one world. The monotonic clock only rises. The wall clock runs with
// it, but can jump, stand still, or run at another speed.
type clock struct {
	mono     int64
	wall     int64 // at the time monoBase
	monoBase int64
	num, den int64 // speed of the wall clock
}

// wallStart is the wall time at which every schedule begins: 2026-01-01.
const wallStart = 1_767_225_600 * second

func (c *clock) reset() { *c = clock{wall: wallStart, num: 1, den: 1} }

func (c *clock) now() core.Now {
	if c.num == c.den {
		return core.Now{Mono: c.mono, Wall: c.wall + c.mono - c.monoBase}
	}
	return core.Now{Mono: c.mono, Wall: c.wall + (c.mono-c.monoBase)*c.num/c.den}
}

// jump changes the wall clock from now on.
func (c *clock) jump(how ClockJump, by int64) {
	c.wall, c.monoBase = c.now().Wall, c.mono
	c.num, c.den = 1, 1
	switch how {
	case ClockForward:
		c.wall += by
	case ClockBack:
		c.wall -= by
	case ClockFreeze:
		c.num = 0
	case ClockSkew:
		if by&1 == 0 {
			c.num = 2
		} else {
			c.den = 2
		}
	}
}
