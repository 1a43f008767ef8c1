// SPDX-License-Identifier: Apache-2.0

package searchability

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
)

// maxVersion is the longest version that a question may name, in bytes. The longest version of a
// class is shorter.
const maxVersion = 256

// key checks the key of a question.
func (s *Service) key(text string) (shard.DocID, error) {
	key, err := shard.ParseDocID(text)
	switch {
	case err != nil:
		return "", &Error{"key", err}
	case !utf8.ValidString(text):
		return "", wrong("key", "the id is not valid UTF-8")
	case !s.Config.Ours(key):
		return "", wrong("key", "%s: ask the stack of the other part", s.Config.NotOurs(key))
	}
	if _, known := s.Config.Collections[string(key.Collection())]; !known && len(s.Config.Collections) > 0 {
		return "", wrong("key", "the settings name no collection %q", key.Collection())
	}
	return key, nil
}

// checkVersion refuses a version that no source of the collection can have.
func (s *Service) checkVersion(key shard.DocID, version string) error {
	if version == "" {
		return nil
	}
	if len(version) > maxVersion {
		return wrong("version", "it has %d bytes, at most %d are allowed", len(version), maxVersion)
	}
	sources := s.Config.SourcesOf(string(key.Collection()))
	if len(sources) == 0 { // any source may name the collection
		for _, from := range s.Config.Sources {
			sources = append(sources, from)
		}
	}
	var last error
	for _, from := range sources {
		class, err := shard.ParseClass(string(from.Class))
		if err == nil {
			_, err = shard.ParseVersion(class, version)
		}
		if err == nil {
			return nil
		}
		last = err
	}
	return &Error{"version", last}
}

// compare compares the version of an order key with a version of the question: negative if the
// key's version is older. There is no version in an empty key, and none in the key of a row after a
// reset.
func compare(k shard.OrderKey, version string) (int, error) {
	if k == "" {
		return -1, nil
	}
	p, err := k.Parts()
	if err != nil {
		return 0, fmt.Errorf("read the row's order key: %w", err)
	}
	want, err := shard.ParseVersion(p.Version.Class(), version)
	if err != nil {
		return 0, &Error{"version", err} // the document's versions are of another class
	}
	if c := p.Version.Compare(want); c != 0 || !k.IsFloor() {
		return c, nil
	}
	return -1, nil
}

// place says where the version is. The version is in the engine if the place is Committed.
func (l *looker) place(in *searchable.Sink, row, health shard.Row) error {
	committed, pending, dead := -1, -1, -1
	if l.q.Version == "" {
		if row.Committed != "" && !row.Committed.IsFloor() {
			committed = 0
		} else if row.Pending > row.Committed {
			pending = 0
		}
	} else {
		for _, k := range []struct {
			key shard.OrderKey
			to  *int
		}{{row.Committed, &committed}, {row.Pending, &pending}, {row.Dead, &dead}} {
			c, err := compare(k.key, l.q.Version)
			if err != nil {
				return err
			}
			*k.to = c
		}
	}
	switch {
	case row.Foreign():
		in.Place, in.Searchable = searchable.Unseen, searchable.Unknown
		in.Why = "a newer build of lull wrote the row: update this program"
	case row.Committed.IsFinal():
		in.Place, in.Why = searchable.Forgotten, "an operator removed the document: lull accepts no version of it"
	case committed >= 0:
		if in.Place = searchable.Committed; committed > 0 {
			in.By = in.Version
		}
	case pending >= 0 && row.Pending > row.Committed:
		if pending > 0 {
			in.By = in.Pending
		}
		l.onItsWay(in, row, health)
	case dead == 0 && !row.Took(row.Dead):
		in.Place, in.Why = searchable.Dead, "the version is a dead letter: see lull explain"
	case l.q.Version == "":
		in.Place, in.Why = searchable.Unseen, "no version is committed"
	default:
		in.Place, in.Why = searchable.Unseen, "no event with this version was admitted: it may be in a queue, or scheduled"
		if dead > 0 {
			in.Why += "; version " + row.Dead.VersionText() + " is a dead letter"
		}
	}
	return nil
}

// onItsWay says why a pending version is not committed.
func (l *looker) onItsWay(in *searchable.Sink, row, health shard.Row) {
	now := shard.MicrosOf(l.Clock.Now())
	say := func(p searchable.Place, until time.Time, format string, args ...any) {
		in.Place, in.Until = p, until
		in.Why = fmt.Sprintf("version %s ", in.Pending) + fmt.Sprintf(format, args...)
	}
	switch {
	case row.Leased(now):
		say(searchable.Claimed, row.LeaseUntil.Time(), "is being written, or the answer of its write was lost")
	case row.Claimed > row.Pending:
		say(searchable.Retrying, time.Time{}, "waits because version %s may be in the sink", row.Claimed.VersionText())
	case health.PausedAt != 0:
		say(searchable.Paused, time.Time{}, "waits for the sink, which an operator paused")
	case health.OpenUntil != 0:
		say(searchable.Unhealthy, health.OpenUntil.Time(), "waits for the sink, which is unhealthy")
	case row.Attempts > 0 || row.Refusals > 0 || row.Claimed == row.Pending && row.LastError != "":
		say(searchable.Retrying, time.Time{}, "was not written, and is tried again: %s", orNoAnswer(row.LastError))
	default:
		until := latest(row, l.Config.For(string(row.Doc.Collection())))
		say(searchable.Waiting, until, "waits for the end of its burst")
	}
}

func orNoAnswer(why string) string {
	if why == "" {
		return "its write got no answer"
	}
	return why
}

// latest returns when the newest version of a burst is due at the latest.
func latest(row shard.Row, d config.Debounce) time.Time {
	until := row.BurstStart.Add(d.MaxWait)
	if row.LastWrite != 0 {
		until = max(until, row.LastWrite.Add(d.MinInterval))
	}
	return until.Time()
}
