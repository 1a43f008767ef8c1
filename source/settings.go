package source

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lullhq/lull/setting"
)

// Settings are the settings of one source: those that every kind has, and the options of its kind.
type Settings struct {
	// Kind is the format; required.
	Kind string `json:"kind"`
	// Class is how its versions compare. Default by kind, but time if NoVersion is arrival, and int
	// if it is position.
	Class Class `json:"class"`
	// Epoch is raised by an operator after the upstream was restored from a backup and its counter
	// went back. Default 0.
	Epoch uint32 `json:"epoch"`
	// NoVersion is what happens to an event without a version. Default "refuse".
	NoVersion NoVersion `json:"noVersion"`
	// MaxVersion is the greatest version that its events may have, as the upstream writes it. Empty
	// means any.
	MaxVersion string `json:"maxVersion"`
	// MaxAhead is how much later than its message was sent a version of the class time may be. Default
	// 1 day.
	MaxAhead time.Duration `json:"maxAhead"`
	// Collection is where its events go that name none. Default: the config's DefaultCollection.
	Collection string `json:"collection"`
	// Collections are those that its events may name. Empty means every collection under
	// collections, or any where the config lists none.
	Collections []string `json:"collections"`
	// Match are the rules that give messages to the source. More specific rules are tried first. A
	// message that no rule of any source takes is decoded by the default source.
	Match []Match `json:"match"`
	// Projection are JSON pointers to the parts that become the document. Empty means the whole
	// payload.
	Projection []string `json:"projection"`

	// Fetch says where the newest state of its documents is loaded from. Nil means that the events
	// carry it.
	Fetch *Fetch `json:"fetch"`

	// Options are the options of the kind, of the same struct type as [Kind.Options]. Nil means the
	// defaults.
	Options any `json:"-"`
}

// Class is how the versions of a source compare.
type Class string

// The version classes.
const (
	ClassInt  Class = "int"
	ClassSeq  Class = "seq"
	ClassTime Class = "time"
	ClassLSN  Class = "lsn"
	ClassLex  Class = "lex"
)

// NoVersion is what happens to an event without a version.
type NoVersion string

// The policies for events without a version.
const (
	// NoVersionRefuse makes it a dead letter.
	NoVersionRefuse NoVersion = "refuse"
	// NoVersionArrival takes the time at which the message was sent: the last arrival wins.
	NoVersionArrival NoVersion = "arrival"
	// NoVersionPosition takes the record's place in its stream: Kafka's offset, of the class int,
	// or Kinesis's sequence number, of the class lex. It only orders the records of one partition
	// or shard, so a key must stay in one.
	NoVersionPosition NoVersion = "position"
)

// Complete fills in the empty settings that follow from the kind. Settings of a kind that is not
// registered have the class int.
func (s Settings) Complete() Settings {
	kind, ok := Lookup(s.Kind)
	s.NoVersion = cmp.Or(s.NoVersion, NoVersionRefuse)
	s.MaxAhead = cmp.Or(s.MaxAhead, setting.Day)
	switch {
	case kind.Versioned:
	case s.NoVersion == NoVersionArrival:
		s.Class = cmp.Or(s.Class, ClassTime)
	case s.NoVersion == NoVersionPosition:
		s.Class = cmp.Or(s.Class, ClassInt)
	}
	s.Class = cmp.Or(s.Class, kind.Class, ClassInt)
	if s.Fetch != nil {
		s.Fetch = s.Fetch.complete()
	}
	if ok && s.Options == nil {
		s.Options = kind.Options
	}
	return s
}

// Lines names the source that decodes the lines of the objects that this source's messages name. It
// is empty if such an object is one document.
func (s Settings) Lines() string {
	if kind, ok := Lookup(s.Kind); ok && kind.Lines != nil {
		return kind.Lines(s)
	}
	return ""
}

// OptionsOf gives the options of a kind from its settings. An error says that they are of another
// type, which only code can cause.
func OptionsOf[T any](s Settings) (T, error) {
	options, ok := s.Options.(T)
	if !ok {
		return options, fmt.Errorf("the options are %T, which are not the options of kind %s", s.Options, s.Kind)
	}
	return options, nil
}
