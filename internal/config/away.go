package config

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// While a sink is away for long, messages wait in the queue alone: no flight holds them (ADR 0027).
const (
	// awayAfter is for how long the circuit has been open by then. Up to it flights wait, so that a
	// short outage costs no message a receive.
	awayAfter = time.Minute
	// awaySoon is how many of a message's receives wait for the short time. It bounds how late a
	// message learns that its sink is back, in outages of some hours.
	awaySoon = 90
	// A wait is drawn from least to most: messages that went away together come back together, and
	// those of different batches do not.
	awayShortLeast, awayShortMost = 192 * time.Second, 240 * time.Second
	awayLongLeast                 = 12 * time.Minute
	// AwayMost is the longest that a message waits between two receives while its sink is away.
	AwayMost = 15 * time.Minute
	// awayProber is how long the flight that opened the circuit has for its probe. After it, whoever
	// comes may probe.
	awayProber = 20 * time.Second
)

// OpenFor is how long the circuit stays open at a level: doubled from level to level.
func (r Retry) OpenFor(level int64) time.Duration {
	// The bound on the level keeps the shift from overflowing.
	if level > 16 || r.BackoffMin<<max(level-1, 0) > r.BackoffMax {
		return r.BackoffMax
	}
	return r.BackoffMin << max(level-1, 0)
}

// AwayText says why messages wait in the queue alone.
func AwayText(health shard.Row) string {
	if health.PausedAt != 0 {
		return "an operator has paused the sink"
	}
	return "the sink is away"
}

// Away reports whether the sink of a health row is away for long, so that nothing is to wait for it
// in a flight. It is not where the time of the probe is over and nobody has probed. A sink that was
// paused a minute ago is away, too.
func (r Retry) Away(health shard.Row, now shard.Micros) bool {
	if health.PausedAt != 0 {
		return now.Sub(health.PausedAt) >= awayAfter
	}
	until := max(health.OpenUntil, health.ProbeUntil)
	if health.OpenUntil == 0 || now > until.Add(awayProber) || shard.Absurd(until, now) {
		return false
	}
	open := max(health.OpenUntil.Sub(now), 0) // what the sink asked for itself may be long
	for level := int64(1); level < health.Level && open < awayAfter; level++ {
		open += r.OpenFor(level)
	}
	return open >= awayAfter
}

// AwayWait is how long a message that was received so often waits for a sink that is away. draw is
// in [0, 1).
func AwayWait(receives int, draw float64) time.Duration {
	least, most := awayShortLeast, awayShortMost
	if receives > awaySoon {
		least, most = awayLongLeast, AwayMost
	}
	return least + time.Duration(draw*float64(most-least))
}

// awayReceives is how often a message is received at most in so much time of a sink that is away.
func awayReceives(d time.Duration) int {
	soon := min(awaySoon, ceil(d, awayShortLeast)/awayShortLeast)
	rest := max(d-soon*awayShortLeast, 0)
	return int(soon + ceil(rest, awayLongLeast)/awayLongLeast)
}
