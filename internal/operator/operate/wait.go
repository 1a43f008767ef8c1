// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// Wait says in a few words why a document waits. A list shows it, and [Explanation.Sentence] says
// the same at length.
type Wait struct {
	State State  `json:"state"` // the state that [Explanation.State] has, such as circuit_open
	Cause string `json:"cause"` // such as "waits for the sink, which is unhealthy"
	// Next is what happens at the time At, such as "next try". Both are empty if nobody knows.
	Next string    `json:"next,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// at adds what follows from the time and from the health row.
func (e *evidence) at(now shard.Micros, retry config.Retry) {
	e.now, e.putOff, e.away = now, putOffUntil(retry, e.health, now), retry.Away(e.health, now)
}

// wait returns why a document in this state waits. It is nil if the document waits for nothing.
func (e *evidence) wait(s State) *Wait {
	r, due := e.row, e.due(e.row.Pending)
	say := func(next string, at time.Time, format string, args ...any) *Wait {
		if at.IsZero() {
			next = ""
		}
		return &Wait{State: s, Cause: fmt.Sprintf(format, args...), Next: next, At: at}
	}
	const again = "next try"
	switch s {
	case StateWaiting:
		if pace := e.timing.MinInterval; pace > e.timing.Quiet && r.LastWrite != 0 && r.LastWrite.Add(pace) > e.now {
			return say("due", due, "waits for its pace, one write in %s", pace)
		}
		return say("due", due, "waits until it is quiet")
	case StateClaimed:
		return say("the lease ends", r.LeaseUntil.Time(), "is being written, or the answer was lost")
	case StateUnknown:
		return say(again, due, "its write got no answer (%s)", times(r.Attempts))
	case StateRefused:
		return say(again, due, "the sink refused it %s: %s", times(r.Refusals), r.LastError)
	case StateConfigured:
		return say(again, due, "the sink is not configured for it: %s", r.LastError)
	case StatePostponed:
		return say(again, due, "it was not written: %s", r.LastError)
	case StateThrottled:
		return say("", time.Time{}, "waits for its share of the sink, which takes fewer documents than are due")
	case StateOpen:
		return say(again, e.health.OpenUntil.Time(), "waits for the sink, which is unhealthy%s", e.cause())
	case StatePaused:
		why := ""
		if e.health.PausedWhy != "" {
			why = " (" + e.health.PausedWhy + ")"
		}
		return say("paused", e.health.PausedAt.Time(), "waits for the sink, which %s paused%s", e.health.PausedBy, why)
	case StateBlocked:
		return say("", time.Time{}, "waits behind version %s, which may be in the sink", r.Claimed.VersionText())
	case StateUnheld:
		return say("", time.Time{}, "waits until its message is received again")
	case StateLate:
		return say("", time.Time{}, "was due, and its flight has not come")
	case StateAway:
		return say("", time.Time{}, "a message of the sink, which is away, may be about it")
	case StateRedriven:
		return say("", time.Time{}, "was sent again, and waits to be judged")
	case StateScheduled:
		return say("sent", e.planned[0].NotBefore, "version %s is scheduled", e.planned[0].Version)
	case StateDead:
		if newest := e.newest(); newest != nil {
			return say("", time.Time{}, "dead letter: %s", newest.Reason)
		}
	}
	return nil
}

// newest returns the dead letter that decides, or nil.
func (e *evidence) newest() *Letter {
	if n := len(e.letters); n > 0 && !e.row.Exists() {
		return &e.letters[n-1]
	}
	return newestLetter(e.row, e.letters)
}
