// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// While a sink is away for a long time, messages wait in the queue and no flight holds them (ADR
// 0027). The time that a message waits follows from how long the sink has been away (ADR 0065).
const (
	// awayAfter is how long the circuit must have been open before the sink counts as away. Before
	// that, flights wait, so a short outage costs no message an extra receive.
	awayAfter = time.Minute
	// awayProber is how long only the flight that opened the circuit may probe the sink. After
	// awayProber, any flight may probe.
	awayProber = 20 * time.Second

	// During the first frequentFor of an outage, lull pings the sink every pingEvery. After
	// frequentFor, lull pings the sink every backoffMax.
	frequentFor, pingEvery = 10 * time.Minute, 7 * time.Second

	// During the first firstFor of an outage, a message waits for the next ping after each of its
	// first awayFirst receives. Each such wait adds a random time between afterPing and twice
	// afterPing. So a message sent shortly before or after the sink returns is still fresh. The
	// second receive covers a message that arrived during a failed ping.
	firstFor, awayFirst, afterPing = 12 * time.Minute, 2, 2 * time.Second
	// After each further receive, up to awayGrowing receives, a message waits for a third of the
	// outage so far. The wait is at least awayEarly and at most awayLate. In the bulk lane, the
	// wait is half of the outage, so that the live lane goes first. So the waiting messages are
	// written within half the outage, or within a minute.
	awayGrowing         = 20
	awayEarly, awayLate = 10 * time.Second, 4 * time.Minute
	// After each of the next awaySoon receives, a message waits for awayLate. After every later
	// receive, it waits for AwayMost. In an outage of some hours, awaySoon bounds how late a
	// message notices that its sink is back.
	awaySoon = 90
	// AwayMost is the longest that a message waits between two receives while its sink is away.
	AwayMost = 15 * time.Minute
	// Each wait is random, between awayLeast percent and 100 percent of the computed wait. Messages
	// of one batch become visible together, and different batches become visible at different
	// times.
	awayLeast = 80
)

// OpenFor is how long the circuit stays open at a level. The time doubles from level to level, up
// to the longer of pingEvery and backoffMin. After frequentFor, the time is backoffMax.
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

// AwayText says why messages wait in the queue, and not in a flight.
func AwayText(health shard.Row) string {
	if health.PausedAt != 0 {
		return "an operator has paused the sink"
	}
	return "the sink is away"
}

// Away reports whether the sink of a health row has been away so long that no flight waits for the
// sink. Away is false if the time of the probe has passed and no flight has probed. A sink that was
// paused at least a minute ago counts as away.
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

// outage is how long the sink of a health row will have been away when the row's level ends. For a
// paused sink, outage is the time since the pause. The result is at most firstFor plus one level.
// The row does not record when the circuit first opened. So outage adds up the times of the levels,
// which do not include the duration of the pings.
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

// AwayWait is how long a message waits for the sink of a health row, at most AwayMost. The argument
// receives is how often the message was received, and draw is a random number in [0, 1).
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
	if wait = max(wait, ping); wait > AwayMost { // the sink itself has asked for a longer wait
		return drawn(AwayMost)
	}
	return wait
}

// A message waits in the queue for a slot of a sink that throttles (ADR 0070).
const (
	throttledLeast, throttledMost = 15 * time.Second, time.Minute
	// throttledLine is how many seconds a message waits for each second of the argument beyond of
	// ThrottledWait.
	throttledLine = 60
	// A message waits for at least its age divided by throttledShare, so that an old message costs
	// few receives.
	throttledShare = 8
)

// ThrottledWait is how long a message waits for a slot of a sink that throttles. The argument
// beyond is how much later the next free slot begins than a flight may wait for. The argument age
// is how long ago the oldest message of the flight was sent. After awayGrowing receives, a message
// waits as if the sink were away, so that no message exceeds [Retry.MaxReceiveCount].
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

// awayReceives is how often a message is received at most while its sink is away for d. The first
// awayGrowing receives count as no time, because all of them may happen in the first minutes.
func awayReceives(d time.Duration) int {
	soon := min(awaySoon, ceil(d, awayLateLeast)/awayLateLeast)
	rest := max(d-soon*awayLateLeast, 0)
	return awayGrowing + int(soon+ceil(rest, awayMostLeast)/awayMostLeast)
}
