// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// resting returns the verdict for a row without a pending version.
func (e *evidence) resting(listed State) (State, string) {
	r := e.row
	switch {
	case listed == StateDead || listed == StateRedriven:
		return listed, e.dead(listed, newestLetter(r, e.letters))
	case listed == StateScheduled && r.Committed == "":
		return listed, "Nothing is committed." + e.plans()
	case listed == StateDropped && e.sink.found:
		return listed, fmt.Sprintf("Nothing is committed and nothing is pending: its version is a dead letter that "+
			"was dropped. The sink holds version %s all the same: publish a newer one.", e.sink.version)
	case listed == StateDropped:
		return listed, "Nothing is committed and nothing is pending: its version is a dead letter that was dropped."
	case listed == StateReset:
		return listed, fmt.Sprintf("It was reset: versions from %s on are accepted again, and none was committed since. "+
			"Publish the newest one.%s", r.Committed.VersionText(), e.plans())
	}
	switch state, text := e.compare(); {
	case state != StateFresh:
		return state, text + e.plans()
	case listed == StateForgotten:
		return listed, fmt.Sprintf("It was forgotten at %s. Every version of it is refused until about %s, or until "+
			"`lull reset`.", clockText(r.LastWrite), time.Unix(r.ExpiresAt, 0).UTC().Format(time.RFC3339))
	case listed == StateFarAhead:
		return listed, fmt.Sprintf(
			"The committed version %s is far ahead: %s. Every later version of the document is stale until it exceeds "+
				"that one, or until `lull reset`.%s", r.Committed.VersionText(), e.ahead, e.plans())
	default:
		return listed, text + e.plans()
	}
}

// compare compares the sink's answer with the committed version.
func (e *evidence) compare() (State, string) {
	r, s := e.row, e.sink
	v, at := r.Committed.VersionText(), clockText(r.LastWrite)
	newer := "nothing newer is known"
	if len(e.planned) > 0 {
		newer = "nothing newer is due"
	}
	repair := fmt.Sprintf(": see `lull index check %s`.", e.collection)
	switch {
	case s.why != "" && r.CommittedOp == shard.Delete:
		return StateFresh, fmt.Sprintf("By its row it is fresh: version %s deleted it at %s, and %s. %s", v, at, newer,
			e.unasked())
	case s.why != "":
		return StateFresh, fmt.Sprintf(
			"By its row it is fresh: version %s was written at %s, and %s. %s", v, at, newer, e.unasked())
	case !s.found && r.CommittedOp == shard.Delete:
		return StateFresh, fmt.Sprintf("It is fresh: version %s deleted it at %s, and %s.", v, at, newer)
	case !s.found:
		return StateSinkLost, fmt.Sprintf("The sink lost it: version %s was written at %s, and the sink has no such "+
			"document%s", v, at, repair)
	case s.key > r.Committed:
		return StateSinkNewer, fmt.Sprintf("The sink holds version %s, which is newer than version %s of its row: the "+
			"table was restored, or an answer was lost and the version became a dead letter%s", s.version, v, repair)
	case r.CommittedOp == shard.Delete:
		return StateSinkKept, fmt.Sprintf("Version %s deleted it at %s, and the sink holds version %s all the same: the "+
			"sink was restored, or somebody else wrote it%s", v, at, s.version, repair)
	case s.key == "":
		return StateSinkOlder, fmt.Sprintf("Version %s was written at %s, and the sink holds a document that lull did "+
			"not write%s", v, at, repair)
	case s.key < r.Committed && s.bytes == shard.BytesSame:
		return StateFresh, fmt.Sprintf("It is fresh: version %s was committed without a write, because it has the same "+
			"content as version %s, which is in the sink since %s, and %s.", v, s.version, at, newer)
	case s.key == r.Committed && s.bytes == shard.BytesOther:
		return StateSinkOlder, fmt.Sprintf("Version %s was written at %s, and somebody changed the document in the sink "+
			"since%s", v, at, repair)
	case s.key < r.Committed:
		return StateSinkOlder, fmt.Sprintf("Version %s was written at %s, and the sink holds the older version %s: the "+
			"sink was restored, or somebody else wrote it%s", v, at, s.version, repair)
	}
	return StateFresh, fmt.Sprintf("It is fresh: version %s is in the sink since %s, and %s.", v, at, newer)
}
