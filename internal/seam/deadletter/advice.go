// SPDX-License-Identifier: Apache-2.0

package deadletter

// Advice says what a reason means and what to do about it, for people. The commands, the console
// and the runbook show the same advice.
type Advice struct{ Why, Fix string }

// Advice returns the advice for a reason. There is advice for an unknown reason too, for example of
// a newer version of lull.
func (r Reason) Advice() Advice {
	if a, ok := advice[r]; ok {
		return a
	}
	return Advice{"This version of lull does not know the reason.", "Use the version of lull that is deployed."}
}

// FailsAgain reports whether a redrive fails the same way, unless the settings change or it is
// forced.
func (r Reason) FailsAgain() bool {
	switch r {
	case Undecodable, Contract, VersionInvalid, TooOld, TooFarAhead:
		return true
	}
	return false
}

var advice = map[Reason]Advice{
	Undecodable: {
		"lull cannot read the message: it is not JSON, or its envelope is unknown, or it is too large or nested too deeply.",
		"Correct the sender and publish the document again. Drop the dead letter: a redrive fails the same way.",
	},
	Contract: {
		"A field of the message is missing or wrong. The detail names the field and what is allowed.",
		"If the settings are wrong, such as match rules or pointers, correct them and redrive. Otherwise correct the " +
			"sender, publish again, and drop the dead letter.",
	},
	VersionInvalid: {
		"The message has no version, or one that lull does not accept: malformed, above maxVersion, or far ahead in time.",
		"Correct the sender and publish again. Redrive if a setting was wrong, or after the version's time has come.",
	},
	ClassMismatch: {
		"The document already has versions of another class, for example times where this message has a number.",
		"Give each source that writes the document the class that its rows have, and redrive. To begin a new count, " +
			"keep the class and raise the source's epoch.",
	},
	TooOld: {
		"The message is older than rows are kept, and nothing is committed. lull cannot tell whether a newer version " +
			"was deleted.",
		"Publish the newest version from the upstream and drop this one. Redrive with force only if it is the newest.",
	},
	DeadDeadline: {
		"lull tried for as long as retry.deadDeadline allows, and the document could still not be written.",
		"Look at the last error and at the sink. lull redrives such dead letters a few times itself; redrive the " +
			"rest once the cause is gone.",
	},
	TooFarAhead: {
		"The event's notbefore is further ahead than the settings allow, or the message has too many such events.",
		"Publish it nearer to its time, or with fewer scheduled events in one message. Then drop the dead letter.",
	},
	RejectedBySink: {
		"The search engine refuses the document permanently, for example because a field does not fit the mapping.",
		"Correct the mapping and redrive. Or correct the document upstream and publish a newer version: then lull removes " +
			"the dead " +
			"letter itself.",
	},
	Refusals: {
		"The search engine, or the collection's enricher, refused the document retry.maxRefusals times, but did not say " +
			"that the refusal is permanent.",
		"Look at the last error, which says which of the two, and at its health. lull redrives such dead letters a few " +
			"times itself; " +
			"redrive the rest once the cause is gone.",
	},
	Payload: {
		"The content that the message points to cannot be loaded: it is missing, not allowed, too large, or not JSON.",
		"Put the object in place, or allow its bucket under payload.allow, and redrive. Drop it if the document is gone.",
	},
	StaleSource: {
		"The source that lull fetches the document from never showed the version that the event announced.",
		"Ask the source for the document. If a replica lags or its cache is old, repair that: lull redrives such dead " +
			"letters a few times itself. If the version never existed, correct the sender and drop it.",
	},
	ReceiveCount: {
		"The message was received again and again and never finished, for example because each invocation timed out or " +
			"was killed.",
		"Look for failing invocations in the logs. lull redrives such dead letters a few times itself; redrive the " +
			"rest once the cause is gone.",
	},
	Panic: {
		"lull's code panicked on the message several times. That is a bug in lull or in one of your own sources or sinks.",
		"Find the stack trace in the logs and report it. Deploy a build with the fix, then redrive.",
	},
	EnrichRejected: {
		"The enricher of the collection says that it can never enrich the document. The detail quotes its answer.",
		"Correct the enricher and redrive. Or correct the document upstream and publish a newer version: then lull " +
			"removes the dead " +
			"letter itself.",
	},
	Cancelled: {
		"An operator cancelled the version with `lull cancel`. The detail says who.",
		"Redrive it to write it after all, or drop it.",
	},
}
