package varve

import "time"

// Readers meet the same damage again and again: it is logged once in a while.
const (
	damagePause = time.Minute
	damagesMax  = 64 // places that are remembered; what is met beside them is counted, and not logged
)

// damaged takes in that a reader met damage.
func (l *Log) damaged(d *CorruptError) {
	now := l.enter()
	l.core.Damaged(now, d)
	tell := l.tellDamage(time.Since(l.began), d.Error())
	l.settle(now)
	if tell {
		l.logger.Error("varve: damage", "dir", l.name, "error", d)
	}
}

// tellDamage reports whether damage is to be logged now, which is so long after the log was opened. The mutex is
// held.
func (l *Log) tellDamage(now time.Duration, text string) bool {
	if at, met := l.damages[text]; met && now-at < damagePause {
		return false
	}
	for old, at := range l.damages {
		if now-at >= damagePause {
			delete(l.damages, old)
		}
	}
	if len(l.damages) >= damagesMax {
		return false
	}
	if l.damages == nil {
		l.damages = make(map[string]time.Duration)
	}
	l.damages[text] = now
	return true
}
