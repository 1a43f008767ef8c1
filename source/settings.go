// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lullhq/lull/setting"
)

// Settings are the settings of one source: the settings that every kind has, and the options of its
// kind.
type Settings struct {
	// Kind is the name of the format; required.
	Kind string `json:"kind"`
	// Class is how the versions of the source compare. The default depends on the kind. It is time
	// if NoVersion is arrival, and int if NoVersion is position.
	Class Class `json:"class"`
	// Epoch is a number that an operator raises after the upstream was restored from a backup and
	// its counter went back. Default 0.
	Epoch uint32 `json:"epoch"`
	// NoVersion is what happens to an event without a version. Default "refuse".
	NoVersion NoVersion `json:"noVersion"`
	// MaxVersion is the greatest version that events of the source may have, as the upstream writes
	// it. If it is empty, every version is allowed.
	MaxVersion string `json:"maxVersion"`
	// MaxAhead bounds a version of the class time: it may be at most MaxAhead later than the time
	// at which its message was sent. Default 1 day.
	MaxAhead time.Duration `json:"maxAhead"`
	// Collection is the collection of events that do not name one. Default: the config's
	// DefaultCollection.
	Collection string `json:"collection"`
	// Collections lists the collections that events of the source may name. If it is empty, they
	// may name every collection of the config, or any collection if the config lists none.
	Collections []string `json:"collections"`
	// Match lists the rules that give messages to the source. More specific rules are tried first.
	// The default source decodes a message that no rule of any source matches.
	Match []Match `json:"match"`
	// Projection lists JSON pointers to the parts of the payload that become the document. If it is
	// empty, the whole payload becomes the document.
	Projection []string `json:"projection"`

	// Fetch says where lull loads the newest state of documents. If it is nil, the events contain
	// the documents.
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
	// NoVersionRefuse makes an event without a version a dead letter.
	NoVersionRefuse NoVersion = "refuse"
	// NoVersionArrival takes the time at which the message was sent as the version: the last
	// arrival wins.
	NoVersionArrival NoVersion = "arrival"
	// NoVersionPosition takes the record's position in its stream as the version. That is the
	// offset of Kafka, of the class int, or the sequence number of Kinesis, of the class lex. A
	// position orders only the records of one partition or shard, so all records of a key must be
	// in the same one.
	NoVersionPosition NoVersion = "position"
)

// Complete fills in the empty settings that follow from the kind. If the kind is not registered,
// the class is int.
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

// Lines is for a source whose messages name objects. It returns the name of the source that decodes
// the lines of these objects, or "" if an object is one document.
func (s Settings) Lines() string {
	if kind, ok := Lookup(s.Kind); ok && kind.Lines != nil {
		return kind.Lines(s)
	}
	return ""
}

// OptionsOf returns the options of a kind from the settings of a source. An error says that the
// options have another type, which only code can cause.
func OptionsOf[T any](s Settings) (T, error) {
	options, ok := s.Options.(T)
	if !ok {
		return options, fmt.Errorf("the options are %T, which are not the options of kind %s", s.Options, s.Kind)
	}
	return options, nil
}
