// SPDX-License-Identifier: Apache-2.0

package refine

// Step is a step of the code, in the words of the design.
type Step string

// The steps of the code.
const (
	admitByReceive Step = "ADMIT by receive"
	admitByIndex   Step = "ADMIT by index"
	admitLate      Step = "ADMIT that arrives after its sender has ended"
	claimNew       Step = "CLAIM"
	claimAgain     Step = "CLAIM again"
	claimLate      Step = "CLAIM that arrives after its sender has ended"
	commit         Step = "COMMIT"
	release        Step = "RELEASE"
	reject         Step = "REJECT"
	parkByReceive  Step = "PARK by receive"
	parkByDlq      Step = "PARK by dlq"
	parkByIndex    Step = "PARK by index, after panics"
	parkRefused    Step = "PARK, refused by a newer pending version"
	redrive        Step = "REDRIVE"
	collect        Step = "COLLECT"
	leaseEnds      Step = "a lease ends"
	gaveUp         Step = "an invocation ends with a claim"
	applies        Step = "the sink applies a version"
	newer          Step = "the sink answers 409"
	copied         Step = "a copy of what was committed"
	refusesItem    Step = "the sink refuses an item"
	forgetsDelete  Step = "the sink forgets a delete"
	arrives        Step = "a message arrives"
	receives       Step = "a message is received"
	flies          Step = "a manifest is written"
	deletes        Step = "index deletes a message"
	acknowledges   Step = "receive acknowledges a message"
	moves          Step = "SQS moves a message"
	letterSent     Step = "a dead letter is sent"
	buries         Step = "dlq lets a message go"
	parks          Step = "a dead letter is parked"
	redriven       Step = "a dead letter is marked as redriven"
	drops          Step = "a parked dead letter is deleted"
	expires        Step = "a message is past its retention"
)

// Line says which action of the model a step of the code is.
type Line struct {
	Step   Step
	Action string // the action of the model; empty if the model has none
	Note   string // how the step is matched, or why the model has no action for it
	Never  bool   // the step does not happen in the tests of package sim
}

// Mapping returns every step that a [Checker] may count, with its action in the model.
func Mapping() []Line {
	return []Line{
		{Step: admitByReceive, Action: "receive: ADMIT", Note: "on a message that carries this version"},
		{Step: admitByIndex, Action: "index: ADMIT behind a dead version", Note: "its flight holds the version"},
		{Step: admitLate, Action: "the late ADMIT arrives", Note: ""},
		{
			Step: claimNew, Action: "index: CLAIM",
			Note: "its flight holds the version; its token is new; the fence is above those of row and sink",
		},
		{Step: claimAgain, Action: "index: CLAIM again", Note: "as CLAIM"},
		{Step: claimLate, Action: "the late CLAIM arrives", Note: "nobody writes under it"},
		{Step: commit, Action: "index: COMMIT", Note: "after the sink has applied the version under this claim"},
		{
			Step: release, Action: "the sink throttles, or an item error; index: RELEASE",
			Note: "nothing was applied, and nothing is on its way",
		},
		{
			Step: reject, Action: "refused for good, or refusals used up; index: REJECT",
			Note: "the same; the dead letter is stored; item errors were as many as the settings say",
		},
		{Step: parkByReceive, Action: "receive: PARK", Note: "the dead letter is stored"},
		{Step: parkByDlq, Action: "dlq: PARK", Note: "the dead letter is stored"},
		{
			Step: parkByIndex, Action: "dlq: PARK",
			Note: "the model has no separate process for it: only the actor differs",
		},
		{Step: parkRefused, Action: "PARK: refused", Note: "the dead letter is stored, which is enough"},
		{Step: redrive, Action: "redrive: takes `dead` away", Note: ""},
		{
			Step: collect, Action: "prune deletes the row",
			Note: "the age is not compared: the model has no time", Never: true,
		},
		{
			Step: leaseEnds, Action: "the lease ends",
			Note: "when a write needs it; for a sink without versions, no request under the lease is on its way",
		},
		{Step: gaveUp, Note: "the claim stays as it is: in the model its execution is slow"},
		{
			Step: applies, Action: "the sink applies",
			Note: "under a live claim, with the claim's fence, and never over a newer version",
		},
		{Step: newer, Action: "the sink answers 409", Note: ""},
		{
			Step: copied, Action: "the late request arrives",
			Note: "only if the sink takes the copy; a copy with an older fence changes nothing",
		},
		{Step: refusesItem, Note: "part of the RELEASE or REJECT that follows"},
		{
			Step: forgetsDelete, Action: "the sink forgets the version of the delete",
			Note: "if the sink then applies an older request", Never: true,
		},
		{Step: arrives, Note: "sent, delivered twice, given back or redriven: the model may do each at any time"},
		{Step: receives, Note: "part of the next judgement"},
		{
			Step: flies, Action: "receive: flight starts",
			Note: "each message in it has an event that receive has not seen done",
		},
		{
			Step: deletes, Action: "index deletes a message",
			Note: "each event is committed, or was seen dead by its flight",
		},
		{
			Step: acknowledges, Action: "receive acknowledges",
			Note: "each event was seen done, or its dead letter is stored",
		},
		{Step: moves, Action: "SQS: moves to the dead-letter queue", Note: ""},
		{Step: letterSent, Note: "part of the REJECT or PARK that follows"},
		{Step: buries, Note: "each event is parked, committed or in another message"},
		{Step: parks, Note: "the model stores a dead letter in one step"},
		{Step: redriven, Note: "part of the redrive that took `dead` away"},
		{Step: drops, Note: "its version is committed; the model keeps dead letters"},
		{Step: expires, Note: "SQS loses it by its own rules", Never: true},
		{
			Step: "TRIP, PROBE, CLOSE, CUT, SPEND, YIELD, SEND, runs",
			Note: "these writes have separate rows and change only pace and order: see the small machines", Never: true,
		},
		{
			Step: "visibility, waits, executions, checkpoints",
			Note: "they decide when a turn happens; in the model it happens at any time", Never: true,
		},
		{Step: "the wait for minInterval", Note: "the machine Pace", Never: true},
	}
}
