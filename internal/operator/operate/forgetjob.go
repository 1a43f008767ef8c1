// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// Forgetting says what a job forgets: one document, or the documents of a message group.
type Forgetting struct {
	Key    shard.DocID   // empty for a group
	Group  string        // empty for one document
	Keys   []shard.DocID // the documents of the group
	DryRun bool          // only say what was found
	By     string        // the operator, for the audit
	Clock  clock.Clock
	// Patience is how long the job begins further rounds, if things of a document end without an
	// operator.
	Patience time.Duration
}

// ForgetCursor is where the next step of the job begins. In each round, the job steps through its
// documents in the order of their hashes.
type ForgetCursor struct {
	Round  int           `json:"round,omitempty"`
	Doc    string        `json:"doc,omitempty"`   // the hash of the document; empty at the beginning of a round
	At     ForgetPlace   `json:"at,omitzero"`     // the place in the document's places
	Only   []string      `json:"only,omitempty"`  // the hashes of the documents of this round; empty for all
	Again  []string      `json:"again,omitempty"` // the hashes of the documents of the next round
	Waited time.Duration `json:"waited,omitempty"`
	Until  time.Time     `json:"until,omitzero"`
	// Unknown says that no place has the document.
	Unknown bool         `json:"unknown,omitempty"`
	Waits   int          `json:"waits,omitempty"` // number of things in this round that end without an operator
	Lines   []ForgetNote `json:"lines,omitempty"` // the things that remain in this round
	// Mine has the counts of the document that a further round would count again. Redo has the sum of
	// these counts for the documents in Again. The next round subtracts Redo, so that each thing is
	// counted once.
	Mine map[string]int `json:"mine,omitempty"`
	Redo map[string]int `json:"redo,omitempty"`
}

func (c ForgetCursor) clone() ForgetCursor {
	c.Again, c.Lines = slices.Clone(c.Again), slices.Clone(c.Lines)
	c.Mine, c.Redo = maps.Clone(c.Mine), maps.Clone(c.Redo)
	c.At.Held, c.At.Moving, c.At.Shared = slices.Clone(c.At.Held), slices.Clone(c.At.Moving), slices.Clone(c.At.Shared)
	return c
}

// ForgetJob forgets documents step by step.
type ForgetJob = job.Job[ForgetCursor, ForgetNote]

// hashLength is how many hexadecimal digits of a hash the cursor keeps.
const hashLength = 16

// hashOf returns the hash with which the row of the job names a key or a group. The table keeps
// this row even after the tombstone is collected. So the row must not name a person.
func hashOf(what string) string {
	sum := sha256.Sum256([]byte(what))
	return hex.EncodeToString(sum[:])[:hashLength]
}

// Bounds of the lists in the cursor.
const (
	maxForgetLines = 100
	maxAgain       = 2000 // documents; further documents get no second round
)

// The wait before the second round is firstForgetWait. It doubles before each further round, up to
// maxForgetWait.
const (
	firstForgetWait = time.Second
	maxForgetWait   = 15 * time.Second
)

// placeRefused is the place of the documents of a group that lull refuses to forget.
const placeRefused = "refused documents"

// Job returns the job. A stack runs one such job at a time. If a command names other documents, the
// job begins again. If a document was forgotten only in part, the next command for the document
// forgets all of it.
func (f Forgetting) Job(api API) ForgetJob {
	docs := map[string]shard.DocID{}
	for _, key := range f.keys() {
		docs[hashOf(string(key))] = key
	}
	args := struct {
		Hash  string `json:"hash"`
		Group bool   `json:"group,omitempty"`
	}{hashOf(string(f.Key) + f.Group), f.Group != ""}
	return ForgetJob{
		ID: "forget", Verb: "forget", Args: args, Anew: true, Private: true, Final: final,
		Step: func(ctx context.Context, from ForgetCursor, s *job.Step[ForgetNote]) (ForgetCursor, bool, error) {
			c := from.clone()
			if c.At.Place != "" && docs[c.Doc] == "" {
				c.lost(c.Doc, s)
			}
			key, there := c.document(docs)
			if !there {
				return f.endRound(ctx, c, docs, s)
			}
			step, err := api.Forget(ctx, ForgetOrder{
				Key: key, Group: f.Group, DryRun: f.DryRun, By: f.By, At: c.At,
			})
			switch {
			case f.Group == "" && errors.Is(err, ErrNotFound): // the next command starts from the beginning
				return ForgetCursor{Unknown: true}, true, nil
			case errors.Is(err, ErrNotFound): // an earlier document of the group removed this one
			case f.Group != "" && errors.Is(err, ErrInput):
				step.Counts = map[string]int{placeRefused + foundIn: 1}
				step.Lines = []ForgetLine{{
					Place: placeRefused, ID: c.Doc, Text: fmt.Sprintf("%s: %v", key, err), Names: true,
				}}
			case err != nil:
				return from, false, err
			}
			c.add(step, s)
			return c, false, nil
		},
	}
}

func (f Forgetting) keys() []shard.DocID {
	if f.Group != "" {
		return f.Keys
	}
	return []shard.DocID{f.Key}
}

// document returns the document of the next step: the document of the cursor, or the one after it.
func (c *ForgetCursor) document(docs map[string]shard.DocID) (key shard.DocID, there bool) {
	for _, hash := range slices.Sorted(maps.Keys(docs)) {
		if hash < c.Doc || len(c.Only) > 0 && !slices.Contains(c.Only, hash) {
			continue
		}
		if hash != c.Doc {
			c.Doc, c.At, c.Mine = hash, ForgetPlace{}, nil
		}
		return docs[hash], true
	}
	return "", false
}

// lost counts a document that the group no longer lists, although not all of the document was
// forgotten.
func (c *ForgetCursor) lost(hash string, s *job.Step[ForgetNote]) {
	s.Count(placeRefused+foundIn, 1)
	c.say(ForgetLine{
		Place: placeRefused, ID: hash,
		Text: "a document has left the group since the job began: forget the document by its key, or the group again",
	})
}

// add adds the counts and lines of a step, and sets the place of the next step.
func (c *ForgetCursor) add(step ForgetStep, s *job.Step[ForgetNote]) {
	for name, n := range step.Counts {
		s.Count(name, n)
		place, removed := strings.CutSuffix(name, removedIn)
		switch {
		case !removed || place == placeTombstone: // a further round counts this again
			c.Mine = merge(c.Mine, map[string]int{name: n})
		default:
			c.Mine = merge(c.Mine, map[string]int{place + foundIn: -n})
		}
	}
	c.Waits += step.Counts[forgetWaiting]
	for _, l := range step.Lines {
		c.say(l)
	}
	if !step.Until.IsZero() {
		c.Until = step.Until
	}
	if s.Did(step.Looked); step.Next != nil {
		c.At = *step.Next
		return
	}
	if left(c.Mine) > 0 && len(c.Again) < maxAgain {
		c.Again = append(c.Again, c.Doc)
		c.Redo = merge(c.Redo, c.Mine)
	}
	c.Doc, c.At, c.Mine = c.Doc+"+", ForgetPlace{}, nil // a text between this hash and the next one
}

func merge(a, b map[string]int) map[string]int {
	if a == nil {
		a = map[string]int{}
	}
	for name, n := range b {
		a[name] += n
	}
	return a
}

// left returns how many of the counted things were not removed.
func left(counts map[string]int) (n int) {
	for name, of := range counts {
		switch {
		case strings.HasSuffix(name, foundIn):
			n += of
		case strings.HasSuffix(name, removedIn):
			n -= of
		}
	}
	return n
}

// say keeps a line, unless it is kept already.
func (c *ForgetCursor) say(l ForgetLine) {
	if len(c.Lines) == maxForgetLines {
		l = ForgetLine{Place: l.Place, Text: "there is more: ask again after these"}
	}
	if len(c.Lines) <= maxForgetLines && !slices.Contains(c.Lines, ForgetNote(l)) {
		c.Lines = append(c.Lines, ForgetNote(l))
	}
}

// endRound ends the job, or begins another round with the documents of which something remained. If
// nothing ends without an operator, a group still gets a second round, because forgetting one
// document may have removed things of another.
func (f Forgetting) endRound(ctx context.Context, c ForgetCursor, docs map[string]shard.DocID,
	s *job.Step[ForgetNote],
) (ForgetCursor, bool, error) {
	for _, hash := range c.Only {
		if docs[hash] == "" {
			c.lost(hash, s)
		}
	}
	wait := min(firstForgetWait<<min(c.Round, 10), maxForgetWait, f.Patience-c.Waited)
	switch {
	case len(c.Again) > 0 && c.Waits > 0 && wait > 0 && !f.DryRun:
		if err := f.Clock.Sleep(ctx, wait); err != nil {
			return c, false, err
		}
		c.Waited += wait
	case len(c.Again) > 0 && c.Round == 0 && len(f.Keys) > 1 && !f.DryRun:
	default:
		for _, l := range c.Lines {
			s.Say(l)
		}
		return ForgetCursor{Until: c.Until}, true, nil
	}
	for name, n := range c.Redo {
		s.Count(name, -n)
	}
	return ForgetCursor{Round: c.Round + 1, Only: c.Again, Waited: c.Waited, Until: c.Until}, false, nil
}

// ForgetNote is a line as the row of the job stores it.
type ForgetNote ForgetLine

// MarshalJSON leaves out a text that names a document, because the row outlives the document.
func (l ForgetNote) MarshalJSON() ([]byte, error) {
	if l.Names {
		l.Text = ""
	}
	return json.Marshal(ForgetLine(l))
}

// String says what remains.
func (l ForgetNote) String() string {
	return cmp.Or(l.Text, l.ID+": ask again, and the answer says what to do")
}

// PlaceCount counts the things of a document in one of the places where lull keeps documents.
type PlaceCount struct {
	Place   string   `json:"place"` // tombstone, sink, scheduled events, dead letters, flights, ...
	Found   int      `json:"found"`
	Removed int      `json:"removed"`
	Remains []string `json:"remains,omitempty"` // why something remains there, and what to do; never content
}

// Forgotten lists, place by place, how much was removed and how much remains.
type Forgotten struct {
	Key   shard.DocID   `json:"key,omitempty"`
	Group string        `json:"group,omitempty"`
	Keys  []shard.DocID `json:"keys,omitempty"` // the documents of the group
	Steps []PlaceCount  `json:"steps"`
	// Remaining counts the things that are still there. Waits counts the things among them that end
	// without an operator.
	Remaining int       `json:"remaining"`
	Waits     int       `json:"waits,omitempty"`
	Until     time.Time `json:"refused_until,omitzero"` // until then no version of the document is accepted
	DryRun    bool      `json:"dry_run,omitempty"`
}

// Result returns what a job did, from its state and its lines. It returns ErrNotFound if no place
// has the document.
func (f Forgetting) Result(s job.State, lines []ForgetNote) (Forgotten, error) {
	done := Forgotten{Key: f.Key, Group: f.Group, Keys: f.Keys, DryRun: f.DryRun, Remaining: left(s.Counts)}
	at, err := job.CursorOf[ForgetCursor](s)
	if err != nil {
		return done, err
	}
	if at.Unknown {
		return done, unknown(f.Key)
	}
	done.Waits, done.Until = s.Counts[forgetWaiting], at.Until
	if n := s.Counts[forgetUndecoded]; n > 0 {
		text := fmt.Sprintf("%d messages cannot be decoded, and do not have the id: the archive deletes them when it expires", n)
		lines = append(lines, ForgetNote{Place: placeArchive, Text: text})
	}
	places := []string{placeTombstone}
	for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
		if sink, ok := strings.CutSuffix(name, foundIn); ok && strings.HasPrefix(sink, "sink ") {
			places = append(places, sink)
		}
	}
	for _, place := range append(places, placeFlights, placeScheduled, sharedScheduled, placeLetters, sharedLetters,
		placeArchive, placeRefused) {
		n := PlaceCount{Place: place, Found: s.Counts[place+foundIn], Removed: s.Counts[place+removedIn]}
		for _, l := range lines {
			if l.Place == place {
				n.Remains = append(n.Remains, l.String())
			}
		}
		if n.Found+len(n.Remains) > 0 || place == placeTombstone || slices.Contains(forgetPages[:3], place) {
			done.Steps = append(done.Steps, n)
		}
	}
	return done, nil
}

// Forget runs the job with the runner r, which needs only Store, Clock and By.
func (f Forgetting) Forget(ctx context.Context, r job.Runner, api API) (Forgotten, error) {
	r.Dry = f.DryRun
	var lines []ForgetNote
	s, err := job.Run(ctx, r, f.Job(api), func(l ForgetNote) { lines = append(lines, l) })
	if err != nil {
		return Forgotten{Key: f.Key}, err
	}
	return f.Result(s, lines)
}
