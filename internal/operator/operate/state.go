// SPDX-License-Identifier: Apache-2.0

package operate

// State is the state of a document, in one word. The tests of internal/local/dev produce each
// state.
type State string

// The states. [States] says what they mean.
const (
	StateWaiting    State = "waiting"
	StateClaimed    State = "claimed"
	StateUnknown    State = "unknown"
	StateThrottled  State = "throttled"
	StatePostponed  State = "postponed"
	StateConfigured State = "configuration"
	StateRefused    State = "refused"
	StateOpen       State = "circuit_open"
	StateAway       State = "away"
	StatePaused     State = "paused"
	StateBlocked    State = "blocked"
	StateUnheld     State = "not_launched"
	StateLate       State = "late"
	StateFresh      State = "fresh"
	StateScheduled  State = "scheduled"
	StateDead       State = "dead"
	StateRedriven   State = "redriven"
	StateDropped    State = "dropped"
	StateFarAhead   State = "far_ahead"
	StateReset      State = "reset"
	StateForgotten  State = "forgotten"
	StateSinkLost   State = "sink_lost"
	StateSinkOlder  State = "sink_older"
	StateSinkNewer  State = "sink_newer"
	StateSinkKept   State = "sink_kept"
	StateCollected  State = "collected"
	StateNobody     State = "not_known"
	StateUnreadable State = "newer_schema"
)

// Meaning is a state and what it means.
type Meaning struct {
	State State
	Text  string
}

// States lists the states in three groups: rows with a pending version, rows without a pending
// version, and documents without a row.
func States() []Meaning {
	return []Meaning{
		{StateWaiting, "waits for the lull"},
		{StateClaimed, "is being written, or the answer of its write was lost"},
		{StateUnknown, "was claimed, and no answer came: it is claimed again"},
		{StateThrottled, "was not accepted by a sink that throttles, or waits for its share of the sink's rate"},
		{StatePostponed, "could not be written for another reason: it is tried again"},
		{StateConfigured, "was not accepted, because the sink or its index is not configured for it"},
		{StateRefused, "was refused by the sink: it is tried again"},
		{StateOpen, "waits for an unhealthy sink"},
		{StateAway, "its sink is away: messages wait undecoded, and one of them may be about it"},
		{StatePaused, "waits for a sink that an operator has paused"},
		{StateBlocked, "waits, because a newer dead version may be in the sink"},
		{StateUnheld, "is in no flight: its message is received again"},
		{StateLate, "is in a flight that is late: its message is received again"},
		{StateFresh, "the newest version that is known is committed"},
		{StateScheduled, "a newer version waits for its time"},
		{StateDead, "a newer version, or the only one, is a dead letter"},
		{StateRedriven, "a dead letter was sent again, and is not judged yet"},
		{StateDropped, "its only version was a dead letter that an operator dropped"},
		{StateFarAhead, "the committed version is so high that every later version is stale"},
		{StateReset, "it was reset, and nothing was committed since"},
		{StateForgotten, "an operator removed it with `lull forget`: no version of it is accepted"},
		{StateSinkLost, "the sink lacks the committed version"},
		{StateSinkOlder, "the sink has an older version, or the document of another writer"},
		{StateSinkNewer, "the sink has a newer version"},
		{StateSinkKept, "the sink has a document that was deleted"},
		{StateCollected, "its row is gone, but the sink has the document"},
		{StateNobody, "nothing is known about it"},
		{StateUnreadable, "a newer build of lull wrote its row"},
	}
}

// Wrong reports whether an operator has to act, because lull alone cannot make the document fresh.
func (s State) Wrong() bool {
	switch s {
	case StateConfigured, StateBlocked, StateFarAhead, StateReset, StateSinkLost, StateSinkOlder, StateSinkNewer,
		StateSinkKept, StateUnreadable:
		return true
	}
	return false
}
