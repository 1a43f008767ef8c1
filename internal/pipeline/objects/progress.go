// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Schema is the newest form of a Progress that this build understands.
const Schema = 1

// Progress records how far an object was read. The row of the object's place (bucket and key) keeps
// the Progress.
type Progress struct {
	Schema int `json:"schema"`
	// Version is S3's sequencer, which orders the objects of one key. ETag is the object's entity
	// tag, if the notification has one. With an ETag, lull reads no other object in its place.
	Version string `json:"version"`
	ETag    string `json:"etag,omitempty"`
	Bytes   int64  `json:"bytes"` // size of the object, according to the notification
	// Written is when the object was written, in microseconds since 1970. It is the version of
	// lines that have no version.
	Written shard.Micros `json:"written"`
	Begun   shard.Micros `json:"begun"`
	// Part counts the slices that were read. A message of an earlier part has nothing to do,
	// because the message that continues was stored before the part was counted.
	Part int `json:"part"`

	At      Position `json:"at,omitzero"`
	Text    int64    `json:"text"`             // bytes of decompressed text so far
	Lines   int64    `json:"lines"`            // number of lines so far, including blank lines
	Sent    int64    `json:"sent"`             // lines that became messages
	Blank   int64    `json:"blank,omitempty"`  // number of lines that are empty or contain only white space
	Faults  int64    `json:"faults,omitempty"` // lines that cannot be messages
	First   []Fault  `json:"first,omitempty"`  // the first faults
	Long    *Fault   `json:"long,omitempty"`   // the line that is being skipped
	Done    bool     `json:"done,omitempty"`
	Aborted string   `json:"aborted,omitempty"` // which operator ended the reading, and why
	// TakenBack lists the Versions that an operator withdrew. lull does not read an object with
	// one of these Versions.
	TakenBack TakenBack `json:"takenBack,omitempty"`
}

// MaxTakenBack is the number of sequencers that a place remembers as withdrawn. It bounds the size
// of the row.
const MaxTakenBack = 8

// TakenBack is a list of sequencers, the newest last. A single sequencer is written as a text,
// which older builds can read. Older builds do not touch a row with a list.
type TakenBack []string

// MarshalJSON writes one sequencer as a text, and several as a list.
func (t TakenBack) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// UnmarshalJSON reads a text or a list.
func (t *TakenBack) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		*t = make(TakenBack, 1)
		return json.Unmarshal(text, &(*t)[0])
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// has reports whether a version was withdrawn. A sequencer may have trailing zeros.
func (t TakenBack) has(v shard.Version) bool {
	return slices.ContainsFunc(t, func(text string) bool {
		back, err := shard.ParseVersion(shard.ClassSeq, text)
		return err == nil && v.Compare(back) == 0
	})
}

// Fault is a line that cannot be a message.
type Fault struct {
	Line   int64  `json:"line"`   // number of the line, from 1
	Offset int64  `json:"offset"` // offset of the line's first byte in the text
	Why    string `json:"why"`
}

func (f Fault) String() string { return fmt.Sprintf("line %d at byte %d %s", f.Line, f.Offset, f.Why) }

// maxFirst is the number of faults that are listed. Further faults are only counted.
const maxFirst = 5

// Parse reads the text in a row. The empty text is a Progress without a version.
func Parse(text string) (Progress, error) {
	var p Progress
	if text == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read the progress of an object: %w", err)
	}
	if p.Schema > Schema {
		return p, fmt.Errorf("read the progress of an object: it has schema %d, this build knows %d", p.Schema, Schema)
	}
	return p, nil
}

// String returns the text for the row.
func (p Progress) String() string {
	p.Schema = Schema
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Progress has only numbers and texts, so this cannot happen
	}
	return string(text)
}

// Next is what to do with a message about an object of many documents.
type Next byte

// The values of Next.
const (
	Begin      Next = iota // read the object from its start
	GoOn                   // continue to read
	Passed                 // another message continues with a later part
	Superseded             // a newer object has replaced this object
	ReadBefore             // the object was read to its end
	WasAborted             // an operator has ended the reading of the object
	WasReset               // an operator has taken the object's version back
)

// idle is how long a row must be unchanged before a message of an earlier part continues the
// reading. The message that should have continued is then lost, perhaps with its queue. If two
// messages continue, some lines are sent twice, which is harmless.
const idle = time.Hour

// Decide returns what to do with a message about a part of an object, by the row of the object's
// place. version is the object's sequencer, and moved is when the row last changed.
func Decide(p Progress, version string, part int, moved, now shard.Micros) (Next, error) {
	v, err := shard.ParseVersion(shard.ClassSeq, version)
	if err != nil {
		return 0, err
	}
	if p.TakenBack.has(v) {
		return WasReset, nil
	}
	if p.Version == "" {
		return Begin, nil
	}
	known, err := shard.ParseVersion(shard.ClassSeq, p.Version)
	if err != nil {
		return 0, err
	}
	switch c := v.Compare(known); {
	case c > 0:
		return Begin, nil
	case c < 0:
		return Superseded, nil
	case p.Aborted != "":
		return WasAborted, nil
	case p.Done:
		return ReadBefore, nil
	case part < p.Part && now.Sub(moved) < idle:
		return Passed, nil
	}
	return GoOn, nil
}

// Reset returns the progress of a place after an operator withdrew the version of the place. Any
// object may be read at the place next, except an object with a withdrawn version. If the place
// already remembers MaxTakenBack versions, Reset fails. It would have to forget one of these
// versions, and lull could read the object of the forgotten version again at once.
func (p Progress) Reset() (Progress, error) {
	if len(p.TakenBack) >= MaxTakenBack {
		return p, fmt.Errorf("%d sequencers of this place were withdrawn already (%s), and the row cannot remember another one: set "+
			"maxVersion of the source, and upload the object under another key", len(p.TakenBack),
			strings.Join(p.TakenBack, ", "))
	}
	return Progress{TakenBack: append(slices.Clip(p.TakenBack), p.Version)}, nil
}

// fault counts a line that cannot be a message.
func (p *Progress) fault(f Fault) {
	if p.Faults++; len(p.First) < maxFirst {
		p.First = append(p.First[:len(p.First):len(p.First)], f)
	}
}

// Problem returns a text about the lines that could not be messages. The text is empty if all lines
// could.
func (p Progress) Problem() string {
	if p.Faults == 0 {
		return ""
	}
	var named []string
	for _, f := range p.First {
		named = append(named, f.String())
	}
	if p.Faults > int64(len(named)) {
		named = append(named, "...")
	}
	return fmt.Sprintf("%d of %d lines cannot be messages: %s", p.Faults, p.Lines, strings.Join(named, "; "))
}
