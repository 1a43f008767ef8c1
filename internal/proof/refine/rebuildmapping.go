// SPDX-License-Identifier: Apache-2.0

package refine

// The steps of the code in a rebuild.
const (
	announces   Step = "REBUILD"
	misses      Step = "MISS"
	missesLate  Step = "MISS of a turn that has ended"
	missRefused Step = "MISS, refused"
	commits     Step = "COMMIT beside a rebuild"
	mirrors     Step = "a turn writes to the new index"
	arrivesLate Step = "a request to the new index arrives whose sender no longer waits"
	reads       Step = "the number of missed writes is read"
	compares    Step = "a version is read in one of the indices"
	repairs     Step = "the new index takes a copy or a delete"
	seals       Step = "SEAL"
	sealRefused Step = "SEAL, refused"
	unseals     Step = "UNSEAL"
	calls       Step = "the call that switches the name is sent"
	switches    Step = "the name stands for the new index"
	rebuilt     Step = "REBUILT"
	givenUp     Step = "REBUILT without a switch"
	takesOver   Step = "START RUN"
	saves       Step = "SAVE RUN"
	givesBack   Step = "END RUN"
	stops       Step = "END RUN of `lull jobs stop`"
)

// MappingOfRebuild returns the steps of a rebuild, with their actions in the machine Rebuild.
func MappingOfRebuild() []Line {
	return []Line{
		{Step: announces, Action: "the health row names the new index"},
		{
			Step: misses, Action: "index: MISS: applied",
			Note: "the turn has written the version to the index in use, and knows of the rebuild",
		},
		{Step: missesLate, Note: "the number of missed writes is one too high, which costs one more comparison"},
		{Step: missRefused, Action: "index: MISS: refused", Note: "nothing is committed"},
		{
			Step: commits, Action: "index: COMMIT",
			Note: "the new index has the version, or the missing write is noted, or the turn does not know of the rebuild",
		},
		{Step: mirrors, Action: "the new index takes a version", Note: "after the index in use has applied it"},
		{Step: arrivesLate, Action: "the new index gets a request whose sender no longer waits"},
		{
			Step: reads, Action: "reads the number of missed writes",
			Note: "no copy is on its way, and every turn knows of the rebuild",
		},
		{
			Step: compares, Action: "reads the document in the index in use, or in the new one",
			Note: "all writes that were sent before the number was read have ended",
		},
		{Step: repairs, Action: "its request is answered: looks again"},
		{Step: seals, Action: "SEAL: applied", Note: "nothing differs, and no write was missed since"},
		{Step: sealRefused, Action: "SEAL: refused"},
		{
			Step: unseals, Action: "UNSEAL",
			Note: "after the call that switches the name has ended, by a program that has resumed",
		},
		{Step: calls, Action: "the call that switches the name is sent", Note: "by the program that wrote SEAL"},
		{Step: switches, Action: "the name stands for the new index"},
		{Step: rebuilt, Action: "the health row names no index any more"},
		{Step: givenUp, Action: "given up", Note: "as UNSEAL"},
		{Step: takesOver, Action: "the rebuild is killed, and resumed", Note: "the first START RUN begins the rebuild"},
		{Step: saves, Note: "by the program that drives the rebuild"},
		{Step: givesBack, Note: "the same"},
		{Step: stops, Note: "the program may still do its last step; the machine of the runner has this write"},
	}
}
