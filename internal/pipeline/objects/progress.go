package objects

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Schema is the newest form of a Progress that this build understands.
const Schema = 1

// Progress is how far an object was read. The row of its place keeps it.
type Progress struct {
	Schema int `json:"schema"`
	// Version is S3's sequencer: objects of one key are ordered by it. ETag is the object's, where the
	// notification has one: nothing else is read in its place.
	Version string `json:"version"`
	ETag    string `json:"etag,omitempty"`
	Bytes   int64  `json:"bytes"` // of the object, as the notification says
	// Written is when the object was written, microseconds since 1970. It is the version of lines
	// that have none.
	Written shard.Micros `json:"written"`
	Begun   shard.Micros `json:"begun"`
	// Part counts the slices that were read. A message of an earlier part has nothing to do: the one
	// that goes on was stored before the part was counted.
	Part int `json:"part"`

	At      Position `json:"at,omitzero"`
	Text    int64    `json:"text"`             // bytes of text so far: of the object where it is not compressed
	Lines   int64    `json:"lines"`            // so far, blank ones too
	Sent    int64    `json:"sent"`             // lines that became messages
	Blank   int64    `json:"blank,omitempty"`  // lines without anything
	Faults  int64    `json:"faults,omitempty"` // lines that cannot be messages
	First   []Fault  `json:"first,omitempty"`  // the first of them
	Long    *Fault   `json:"long,omitempty"`   // the line that is being passed over
	Done    bool     `json:"done,omitempty"`
	Aborted string   `json:"aborted,omitempty"` // who ended it, and why
}

// Fault is a line that cannot be a message.
type Fault struct {
	Line   int64  `json:"line"`   // from 1
	Offset int64  `json:"offset"` // of its first byte in the text
	Why    string `json:"why"`
}

func (f Fault) String() string { return fmt.Sprintf("line %d at byte %d %s", f.Line, f.Offset, f.Why) }

// maxFirst is how many faults are named. The others are counted.
const maxFirst = 5

// Parse reads what a row keeps; the empty text is a Progress without a version.
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

// String is what a row keeps.
func (p Progress) String() string {
	p.Schema = Schema
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and texts: cannot happen
	}
	return string(text)
}

// Next says what is to be done with a message about an object.
type Next byte

// What is to be done.
const (
	Begin      Next = iota // read it from its beginning
	GoOn                   // read on
	Passed                 // a later part of it has a message of its own
	Superseded             // a newer object has taken its place
	ReadBefore             // it was read to its end
	WasAborted             // an operator has ended it
)

// idle is how long nothing has moved when a message of an earlier part goes on after all: the one
// that should have done it is lost, with its queue perhaps. Two that go on send lines twice, which
// is harmless.
const idle = time.Hour

// Decide says what to do with a message of a part of an object, by what the row has of the object's
// place. version is the object's sequencer, and moved is when the row last changed.
func Decide(p Progress, version string, part int, moved, now shard.Micros) (Next, error) {
	v, err := shard.ParseVersion(shard.ClassSeq, version)
	if err != nil {
		return 0, err
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

// fault counts a line that cannot be a message.
func (p *Progress) fault(f Fault) {
	if p.Faults++; len(p.First) < maxFirst {
		p.First = append(p.First[:len(p.First):len(p.First)], f)
	}
}

// Problem says in one text which lines could not be messages, empty where all could.
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
