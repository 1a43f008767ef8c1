package config

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// While a sink is away for long, messages wait in the queue alone: no flight holds them (ADR 0027).
// How long they wait follows from how long the sink has been away (ADR 0065).
const (
	// awayAfter is how long the circuit must have been open before the sink counts as away. Before
	// that, flights wait, so a short outage costs no message an extra receive.
	awayAfter = time.Minute
	// awayProber is how long only the flight that opened the circuit may probe. After it, any
	// flight may probe.
	awayProber = 20 * time.Second

	// During the first frequentFor of an outage, lull pings the sink every pingEvery. After that it
	// pings every backoffMax.
	frequentFor, pingEvery = 10 * time.Minute, 7 * time.Second

	// During the first firstFor of an outage, the first awayFirst receives of a message wait for
	// the next ping. They add a random time between afterPing and twice afterPing. So a message
	// sent shortly before or after the sink returns is still fresh. The second receive covers a
	// message that arrived during a failed ping.
	firstFor, awayFirst, afterPing = 12 * time.Minute, 2, 2 * time.Second
	// The next receives, up to awayGrowing, wait for a third of the outage so far, within these
	// bounds. In the bulk lane they wait for half of it, so that live goes first. So the waiting
	// messages are written within half the outage, or within a minute.
	awayGrowing         = 20
	awayEarly, awayLate = 10 * time.Second, 4 * time.Minute
	// The next awaySoon receives wait for awayLate, and all later ones for AwayMost. In an outage
	// of some hours, awaySoon bounds how late a message notices that its sink is back.
	awaySoon = 90
	// AwayMost is the longest that a message waits between two receives while its sink is away.
	AwayMost = 15 * time.Minute
	// Each wait is random, between awayLeast percent and all of it. So messages of one batch return
	// together, and different batches return at different times.
	awayLeast = 80
)

// OpenFor is how long the circuit stays open at a level. It doubles from level to level up to the
// longer of pingEvery and backoffMin. After frequentFor it is backoffMax.
func (r Retry) OpenFor(level int64) time.Duration {
	most := min(max(pingEvery, r.BackoffMin), r.BackoffMax)
	open, before := min(r.BackoffMin, most), time.Duration(0)
	for ; level > 1 && open < most; level-- {
		before += open
		open = min(2*open, most)
	}
	if time.Duration(level-1) >= ceil(frequentFor-before, most)/most {
		return r.BackoffMax
	}
	return open
}

// AwayText says why messages wait in the queue alone.
func AwayText(health shard.Row) string {
	if health.PausedAt != 0 {
		return "an operator has paused the sink"
	}
	return "the sink is away"
}

// Away reports whether the sink of a health row has been away so long that no flight waits for it.
// It is false if the time of the probe has passed and no flight has probed. A sink that was paused
// at least a minute ago is away, too.
func (r Retry) Away(health shard.Row, now shard.Micros) bool {
	if health.PausedAt != 0 {
		return now.Sub(health.PausedAt) >= awayAfter
	}
	until := max(health.OpenUntil, health.ProbeUntil)
	if health.OpenUntil == 0 || now > until.Add(awayProber) || shard.Absurd(until, now) {
		return false
	}
	return r.outage(health, now) >= awayAfter
}

// outage is how long the sink of a health row will have been away when its level ends. For a paused
// sink it is the time since the pause. The result is at most firstFor and one level. The row does
// not record when the circuit first opened. The sum of the levels is that time without the duration
// of the pings.
func (r Retry) outage(health shard.Row, now shard.Micros) time.Duration {
	if health.PausedAt != 0 {
		return now.Sub(health.PausedAt)
	}
	open := max(health.OpenUntil.Sub(now), 0) // the sink itself may have asked for a long time
	for level := int64(1); level < health.Level && open < firstFor; level++ {
		open += r.OpenFor(level)
	}
	return open
}

// AwayWait is how long a message waits for the sink of a health row, at most AwayMost. receives is
// how often the message was received. draw is random, in [0, 1).
func (r Retry) AwayWait(health shard.Row, now shard.Micros, bulk bool, receives int, draw float64) time.Duration {
	drawn := func(most time.Duration) time.Duration {
		least := most * awayLeast / 100
		return least + time.Duration(draw*float64(most-least))
	}
	outage, wait, ping := r.outage(health, now), time.Duration(0), time.Duration(0)
	if health.PausedAt == 0 { // no ping ends a pause
		ping = max(health.OpenUntil.Sub(now), 0) + afterPing + time.Duration(draw*float64(afterPing))
	}
	switch {
	case receives <= awayFirst && outage < firstFor && ping > 0:
	case receives <= awayGrowing && bulk:
		wait = drawn(min(max(outage/2, awayEarly), awayLate))
	case receives <= awayGrowing:
		wait = drawn(min(max(outage/3, awayEarly), awayLate))
	case receives <= awayGrowing+awaySoon:
		wait = drawn(awayLate)
	default:
		wait = drawn(AwayMost)
	}
	if wait = max(wait, ping); wait > AwayMost { // the sink itself has asked for more
		return drawn(AwayMost)
	}
	return wait
}

// A message waits in the queue for a slot of a sink that throttles (ADR 0070).
const (
	throttledLeast, throttledMost = 15 * time.Second, time.Minute
	// throttledLine is how long a message waits for each second that its flight would have had to
	// reach further ahead.
	throttledLine = 60
	// throttledShare of a message's age is the least that it waits, so that an old one costs few
	// receives.
	throttledShare = 8
)

// ThrottledWait is how long a message waits for a slot of a sink that throttles. beyond is how much
// further ahead its flight would have had to reach, and age how long ago its oldest message was
// sent. After awayGrowing receives, a message waits as if the sink were away: so
// [Config.MaxReceiveCount] holds.
func (r Retry) ThrottledWait(health shard.Row, now shard.Micros, bulk bool, receives int, beyond, age time.Duration,
	draw float64,
) time.Duration {
	if receives > awayGrowing {
		return r.AwayWait(health, now, bulk, receives, draw)
	}
	wait := min(max(throttledLeast, min(beyond*throttledLine, age), age/throttledShare), throttledMost)
	return time.Duration((0.8 + 0.4*draw) * float64(wait))
}

// The shortest waits of a message that is received often.
const (
	awayLateLeast = awayLate * awayLeast / 100
	awayMostLeast = AwayMost * awayLeast / 100
)

// awayReceives is how often a message is received at most while its sink is away for d. The growing
// waits count as no time, because many of them may fall into the first minutes.
func awayReceives(d time.Duration) int {
	soon := min(awaySoon, ceil(d, awayLateLeast)/awayLateLeast)
	rest := max(d-soon*awayLateLeast, 0)
	return awayGrowing + int(soon+ceil(rest, awayMostLeast)/awayMostLeast)
}
