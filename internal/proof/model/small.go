// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
	"sync"
)

// Case is one exploration of a small machine, of the design or of a change that breaks it.
type Case struct {
	Name    string // the name of the file with the story, empty if the design holds
	Machine string
	What    string
	Run     func() Told
}

// Told is the result of an exploration. Lines are its story, which is the shortest counterexample.
type Told struct {
	Summary string
	States  int
	Full    bool
	Broken  Broken
	Stuck   bool
	Steps   int // the number of steps in the story
	Lines   []string
}

func told[S comparable](m Machine[S], watch Broken, say func(Label) string) func() Told {
	return sync.OnceValue(func() Told {
		r := Explore(m, Options{Watch: watch, Stuck: true})
		var lines []string
		for i, s := range r.Path {
			lines = append(lines, fmt.Sprintf("%2d. %s", i+1, say(s.Label)))
		}
		if r.Round > 0 {
			lines = append(lines, fmt.Sprintf("    ... and again from line %d.", r.Round))
		}
		return Told{r.String(), r.States, r.Full, r.Broken, r.Stuck, len(r.Path), lines}
	})
}

// Cases returns the explorations of the small machines.
func Cases() []Case {
	breaker := func(name, what string, b Breaker) Case {
		return Case{Name: name, Machine: "breaker", What: what, Run: told(b, ClaimedOpen|ProbedByTwo|ClaimedPaused, sayPlain)}
	}
	pace := func(name, what string, p Pace) Case {
		return Case{Name: name, Machine: "pace", What: what, Run: told(p, TooSoon, sayPlain)}
	}
	groups := func(name, what string, g Groups) Case {
		return Case{Name: name, Machine: "groups", What: what, Run: told(g, 0, sayGroups)}
	}
	rebuild := func(name, what string, m Rebuild) Case {
		return Case{Name: name, Machine: "rebuild", What: what, Run: told(m, WentBack|Resurrected, sayPlain)}
	}
	ill, paused := BreakerBudget{Ills: 1}, BreakerBudget{Ills: 1, Pauses: 1}
	return []Case{
		breaker("", "three flights, a sink that is unhealthy twice, two crashes",
			Breaker{Budget: BreakerBudget{Ills: 2, Crashes: 2}}),
		breaker("", "the sink denies every ping, and is unhealthy twice; a crash",
			Breaker{Denied: true, Budget: BreakerBudget{Ills: 2, Crashes: 1}}),
		breaker("breaker-denied-ping-trips", "a denied ping counts as an unhealthy sink",
			Breaker{Denied: true, Rules: BreakerRules{DeniedTrips: true}, Budget: ill}),
		breaker("breaker-probe-without-end", "probe_until never runs out",
			Breaker{Rules: BreakerRules{ProbeForever: true}, Budget: BreakerBudget{Ills: 1, Crashes: 1}}),
		breaker("breaker-probe-by-anyone", "PROBE has no condition",
			Breaker{Rules: BreakerRules{ProbeByAnyone: true}, Budget: ill}),
		breaker("breaker-probe-with-a-document", "the probe sends a document instead of a ping",
			Breaker{Rules: BreakerRules{ProbeDocument: true}, Budget: ill}),
		breaker("breaker-without-probe", "an open circuit breaker waits for a request that succeeds",
			Breaker{Rules: BreakerRules{WaitForSuccess: true}, Budget: ill}),
		breaker("breaker-close-refused", "a flight whose CLOSE was refused claims nevertheless",
			Breaker{Rules: BreakerRules{CloseRefusedYes: true}, Budget: BreakerBudget{Ills: 2}}),
		breaker("", "two pauses, a sink that is unhealthy once, a crash",
			Breaker{Budget: BreakerBudget{Ills: 1, Crashes: 1, Pauses: 2}}),
		breaker("breaker-pause-unread", "index does not check for a pause",
			Breaker{Rules: BreakerRules{PauseUnread: true}, Budget: paused}),
		breaker("breaker-close-unread", "a flight whose CLOSE was applied does not check the returned row for a pause",
			Breaker{Rules: BreakerRules{CloseUnread: true}, Budget: paused}),
		breaker("breaker-close-resumes", "CLOSE ends a pause, as if both were one attribute",
			Breaker{Rules: BreakerRules{CloseResumes: true}, Budget: paused}),
		breaker("breaker-trip-resumes", "TRIP ends a pause",
			Breaker{Rules: BreakerRules{TripResumes: true}, Budget: paused}),
		pace("", "two hosts with one clock, two crashes", Pace{Least: minInterval, Crashes: 2}),
		pace("", "clocks differ by one tick, and the required interval is one tick shorter",
			Pace{Skew: 1, Least: minInterval - 1, Crashes: 2}),
		pace("pace-last-write-by-claim", "last_write is the claim's time",
			Pace{Rules: PaceRules{ByClaim: true}, Least: minInterval}),
		pace("pace-not-in-claim", "minInterval is not in CLAIM's condition",
			Pace{Rules: PaceRules{Unchecked: true}, Least: minInterval}),
		pace("pace-clocks-apart", "clocks differ by one tick, and the whole interval is required",
			Pace{Skew: 1, Least: minInterval}),
		groups("", "one document kills its request", Groups{}),
		groups("", "one document kills the invocation", Groups{Kills: true}),
		groups("groups-attempts-ignored", "index does not read attempts", Groups{Rules: GroupRules{OneGroup: true}}),
		groups("groups-in-order", "single documents keep the flight's order; one document kills the invocation",
			Groups{Rules: GroupRules{InOrder: true}, Kills: true}),
		rebuild("", "v2 deletes; two crashes, two writes that are missed", Rebuild{
			Deletes: Keys(2), Crashes: 2,
			Fails: 2,
		}),
		rebuild("", "no deletes; two crashes, two writes that are missed", Rebuild{Crashes: 2, Fails: 2}),
		rebuild("", "v3 deletes; two crashes, two writes that are missed", Rebuild{
			Deletes: Keys(3), Crashes: 2,
			Fails: 2,
		}),
		rebuild("", "v1 deletes; two crashes, two writes that are missed", Rebuild{
			Deletes: Keys(1), Crashes: 2,
			Fails: 2,
		}),
		rebuild("rebuild-no-wait", "turns that began before the rebuild may still write when indices are compared",
			Rebuild{Rules: RebuildRules{NoWait: true}}),
		rebuild("rebuild-missed-write-forgotten", "a write that the new index did not take is not noted anywhere",
			Rebuild{Rules: RebuildRules{Forgotten: true}, Fails: 1}),
		rebuild("rebuild-missed-write-noted-late", "a write that the new index did not take is noted after COMMIT",
			Rebuild{Rules: RebuildRules{MarkLate: true}, Fails: 1, Crashes: 1}),
		rebuild("rebuild-no-seal", "a write may be noted as missed while the name is switched",
			Rebuild{Rules: RebuildRules{NoSeal: true}, Fails: 1}),
		rebuild("rebuild-missed-under-the-seal", "a turn commits although its missed write could not be noted",
			Rebuild{Rules: RebuildRules{MarkRefused: true}, Fails: 1}),
		rebuild("rebuild-unsealed-early", "UNSEAL runs while the call that switches the name may be on its way",
			Rebuild{Rules: RebuildRules{UnsealedEarly: true}, Fails: 1, Crashes: 1}),
		rebuild("rebuild-given-up-early", "a rebuild is given up while the call that switches the name may be on its way",
			Rebuild{Rules: RebuildRules{GivenUpEarly: true}, Fails: 1, Crashes: 1}),
		rebuild("rebuild-unverified", "the name is switched after the copy, without a comparison",
			Rebuild{Rules: RebuildRules{Unverified: true}}),
		rebuild("rebuild-one-way", "the comparison ignores documents that only the new index has",
			Rebuild{Rules: RebuildRules{OneWay: true}, Deletes: Keys(2), Fails: 1}),
		rebuild("rebuild-written-beside", "turns write to both indices at the same time, not to the one in use first",
			Rebuild{Rules: RebuildRules{Beside: true}, Deletes: Keys(1)}),
		rebuild("rebuild-copies-late", "indices are compared while copies are on their way",
			Rebuild{Rules: RebuildRules{Hasty: true}, Deletes: Keys(2)}),
		rebuild("rebuild-missed-writes-late", "indices are compared while missed writes may still arrive",
			Rebuild{Rules: RebuildRules{MissedLate: true}, Deletes: Keys(3), Fails: 2}),
		rebuild("rebuild-finished-first", "turns stop writing to the new index before the name is switched",
			Rebuild{Rules: RebuildRules{FinishedFirst: true}}),
	}
}

// JobCases returns the explorations of the runner of jobs.
func JobCases() []Case {
	jobs := func(name, what string, m Jobs) Case {
		watch := Skipped | Miscounted | Leaseless | Undone | Revived
		return Case{Name: name, Machine: "jobs", What: what, Run: told(m, watch, sayJobs)}
	}
	return []Case{
		jobs("", "two programs; a kill, a late request, a stop; a finished job starts again",
			Jobs{Budget: JobBudget{Kills: 1, Lates: 1, Stops: 1, Again: 1}}),
		jobs("jobs-cursor-before-the-step", "the cursor is stored before its step is done",
			Jobs{Rules: JobRules{CursorFirst: true}}),
		jobs("jobs-counts-apart", "counts are stored before the cursor, in a separate write",
			Jobs{Rules: JobRules{Apart: true}, Budget: JobBudget{Kills: 1}}),
		jobs("jobs-save-without-owner", "SAVE RUN does not check the owner",
			Jobs{Rules: JobRules{AnySaves: true}}),
		jobs("jobs-end-without-owner", "END RUN does not check the owner",
			Jobs{Rules: JobRules{AnyEnds: true}, Budget: JobBudget{Stops: 1}}),
		jobs("jobs-stop-keeps-the-owner", "a stop does not remove the owner",
			Jobs{Rules: JobRules{KeepsOwner: true}, Budget: JobBudget{Stops: 1}}),
		jobs("jobs-stop-of-a-done-job", "a stop marks a finished job as stopped",
			Jobs{Rules: JobRules{StopsDone: true}, Budget: JobBudget{Stops: 1, Again: 1}}),
		jobs("jobs-start-applied-twice", "START RUN may be applied again after its own retry",
			Jobs{Rules: JobRules{StartsTwice: true}, Budget: JobBudget{Lates: 1, Stops: 1}}),
	}
}

func sayPlain(l Label) string {
	return l.render(string(rune('A'+l.Exec)), fmt.Sprintf("v%d", l.Key), "")
}

func sayJobs(l Label) string {
	return l.render(string(rune('A'+l.Exec)), fmt.Sprint(l.Key), "")
}

func sayGroups(l Label) string {
	var docs []string
	for d := range l.Messages.All() {
		name := fmt.Sprint(d + 1)
		if d == groupBad {
			name += " (bad)"
		}
		docs = append(docs, name)
	}
	text := l.render("", "", strings.Join(docs, ", "))
	if len(docs) == 1 {
		text = strings.Replace(text, "documents", "document", 1)
	}
	return text
}
