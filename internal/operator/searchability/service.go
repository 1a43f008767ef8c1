// SPDX-License-Identifier: Apache-2.0

package searchability

import (
	"context"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
)

// Service answers questions. Only Engines may be nil. It is safe for concurrent use.
type Service struct {
	Shards shard.Store
	Config *config.Config
	Clock  clock.Clock
	// Engines says what a search finds. If it is nil, or if a sink cannot be asked, the answer comes
	// from the row and the settings.
	Engines Engines
}

// Engines asks engines what a search finds.
type Engines interface {
	// Finds asks a sink whether a search finds the committed version of a row, or a newer one, or no
	// longer finds a deleted document. why says why it does not. ok is false if this sink does not
	// say what a search finds; why then says why.
	Finds(ctx context.Context, sink string, row shard.Row) (found searchable.State, why string, ok bool)
}

// Error says which part of a question is wrong.
type Error struct {
	Parameter string // key, version or wait
	Err       error
}

func (e *Error) Error() string { return e.Parameter + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

func wrong(parameter, format string, args ...any) error {
	return &Error{parameter, fmt.Errorf(format, args...)}
}

// A long poll reads after these pauses: the first one, then twice the last one, up to most.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 2 * time.Second
)

// Answer answers a question. It waits at most as long as the question says, and returns at once if
// an operator has to act. If ctx ends while it waits, it returns the last answer.
func (s *Service) Answer(ctx context.Context, q searchable.Question) (searchable.Answer, error) {
	l, err := s.prepare(q)
	if err != nil {
		return searchable.Answer{}, err
	}
	waited := time.Duration(0)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		a, err := l.look(ctx, waited)
		if err != nil {
			return searchable.Answer{}, err
		}
		// The answer may change as soon as a refresh interval is over.
		step := min(pause, q.Wait-waited)
		if l.next > 0 {
			step = min(step, l.next)
		}
		if settled(a) || step <= 0 {
			return a, nil
		}
		if cut := s.Clock.Sleep(ctx, step); cut != nil {
			return a, nil //nolint:nilerr // the last answer is better than none
		}
		waited += step
	}
}

// settled reports whether waiting cannot change the answer.
func settled(a searchable.Answer) bool {
	for _, in := range a.Sinks {
		switch {
		case in.Searchable == searchable.Yes:
		case in.Place == searchable.Dead, in.Place == searchable.Forgotten:
			return true
		case in.Searchable == searchable.No:
			return false
		}
	}
	return true
}

// prepare checks a question.
func (s *Service) prepare(q searchable.Question) (*looker, error) {
	key, err := s.key(q.Key)
	if err != nil {
		return nil, err
	}
	if q.Wait < 0 || q.Wait > searchable.MaxWait {
		return nil, wrong("wait", "want 0s to %s", searchable.MaxWait)
	}
	if err := s.checkVersion(key, q.Version); err != nil {
		return nil, err
	}
	l := &looker{Service: s, q: q, rows: s.Config.RowsOf(key), seen: make(map[shard.DocID]sighting)}
	if name := key.Sink(); name != "" {
		row, there := s.Config.RowAt(key, name)
		if !there {
			return nil, wrong("key", "collection %s is not written to a sink %q", key.Collection(), name)
		}
		l.rows = []shard.DocID{row}
	}
	for _, row := range l.rows {
		l.ids = append(l.ids, row, shard.HealthRow(s.Config.SinkOf(row)))
	}
	return l, nil
}

// looker reads the rows of one question, perhaps several times.
type looker struct {
	*Service

	q    searchable.Question
	rows []shard.DocID
	ids  []shard.DocID // each row, and the health row of its sink
	seen map[shard.DocID]sighting
	next time.Duration // until a refresh interval is over; 0 if none is running
}

// sighting is the first read that showed a committed version.
type sighting struct {
	key    shard.OrderKey
	waited time.Duration // how long the question had waited until then
}

// look reads the rows once.
func (l *looker) look(ctx context.Context, waited time.Duration) (searchable.Answer, error) {
	rows, err := l.Shards.Read(ctx, l.ids, shard.Consistent)
	if err != nil {
		return searchable.Answer{}, fmt.Errorf("read the rows of %s: %w", l.q.Key, err)
	}
	a := searchable.Answer{Key: l.q.Key, Version: l.q.Version, Searchable: searchable.Yes}
	l.next = 0
	for i, id := range l.rows {
		in, err := l.sink(ctx, id, rows[2*i], rows[2*i+1], waited)
		if err != nil {
			return a, err
		}
		switch {
		case in.Searchable == searchable.No:
			a.Searchable = searchable.No
		case in.Searchable == searchable.Unknown && a.Searchable == searchable.Yes:
			a.Searchable = searchable.Unknown
		}
		a.Sinks = append(a.Sinks, in)
	}
	return a, nil
}

// sink answers for one sink.
func (l *looker) sink(ctx context.Context, id shard.DocID, row, health shard.Row, waited time.Duration) (
	searchable.Sink, error,
) {
	in := searchable.Sink{
		Sink: l.Config.SinkOf(id), Committed: row.Committed.String(), Version: row.Committed.VersionText(),
		Operation: string(row.CommittedOp), Since: row.LastWrite.Time(), Searchable: searchable.No,
	}
	if row.Pending > row.Committed {
		in.Pending = row.Pending.VersionText()
	}
	if err := l.place(&in, row, health); err != nil || in.Place != searchable.Committed {
		return in, err
	}
	if row.Committed != l.seen[id].key {
		l.seen[id] = sighting{row.Committed, waited}
	}
	if l.Engines != nil {
		found, why, ok := l.Engines.Finds(ctx, in.Sink, row)
		if in.Searchable, in.Why = found, why; ok {
			if found == searchable.Yes {
				in.How = searchable.Asked
			}
			return in, nil
		}
	}
	l.promised(&in, row, waited-l.seen[id].waited)
	return in, nil
}

// promised answers from the row and the settings. watched is how long this question has seen the
// committed version.
func (l *looker) promised(in *searchable.Sink, row shard.Row, watched time.Duration) {
	refresh, known := l.Config.Sinks[in.Sink].RefreshInterval()
	if !known {
		in.Searchable = searchable.Unknown
		in.Why += fmt.Sprintf("; set sinks.%s.refresh to the refresh interval of the index", in.Sink)
		if l.Engines == nil {
			in.Why = fmt.Sprintf("version %s is committed, and sinks.%s.refresh does not say when a search finds a write",
				in.Version, in.Sink)
		}
		return
	}
	in.Why = ""
	// The row's time is from the clock of another machine, and a raised row has the time at which a
	// lease ended. The lease is longer than both may be wrong (design section 5).
	over := row.LastWrite.Time().Add(refresh + l.Config.Lease(in.Sink))
	switch {
	case refresh == 0:
		in.Searchable, in.How = searchable.Yes, searchable.AtOnce
	case watched >= refresh || !l.Clock.Now().Before(over):
		in.Searchable, in.How = searchable.Yes, searchable.Refreshed
	default:
		left := refresh - watched
		in.Until = over
		if l.next == 0 || left < l.next {
			l.next = left
		}
		in.Why = fmt.Sprintf("version %s is committed, and the refresh interval of %s is not certainly over", in.Version, refresh)
	}
}
