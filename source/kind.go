// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
)

// Kind is the format of one upstream. The package of a kind registers the kind in an init function.
// A program that imports the package can decode the format.
type Kind struct {
	setting.Kind

	// Class is how versions compare if the settings name no class.
	Class Class
	// Versioned says that every message has a version of Class. The settings of such a kind must
	// not name another class, and must not set noVersion to arrival or position.
	Versioned bool
	// OwnDocument says that the kind itself decides what becomes the document. The settings of such
	// a kind must not have a projection.
	OwnDocument bool
	// Check returns the contradictions between settings. The bounds of each setting are already
	// checked. Check is nil if the settings of the kind cannot contradict each other.
	Check func(Settings) []setting.Problem
	// New makes the format of one source. Its errors name the setting that is wrong.
	New func(*Rules) (Format, error)
	// Lines is for a kind whose messages name objects. It returns the name of the source that
	// decodes the lines of an object, or "" if the whole object is one document. If Lines is nil,
	// every object is one document.
	Lines func(Settings) string
	// Resync marks a body as part of a resync run. If collection is not empty, it also sets the
	// collection. Resync is nil if messages of the kind name neither run nor collection. lull then
	// puts such a message into an envelope with [Wrapped], and the format reads the run with
	// [Draft.InRun].
	Resync func(s Settings, body, run, collection string) (string, error)
	// Example makes messages of the kind for people to try. It is optional, but recommended.
	Example Example
}

// Format decodes the messages of one source. It must be safe for concurrent use, and must not panic
// on any input. Package sourcetest tests that, and the promises of this package.
type Format interface {
	// Decode reads one body, which is one JSON value without its envelopes. The result must depend
	// only on the body. The result is a Draft, a Draft that says why the body is skipped, or an
	// Invalid. An Invalid names the field that is wrong. With an Invalid, Decode also returns the
	// fields of the Draft that it has already read.
	Decode(b event.Body) (Draft, *event.Invalid)
	// Document makes the JSON object to write, from Draft.Data or from the content at Draft.Ref.
	// lull calls Document once for each write. [Rules.Document] is enough for most formats.
	Document(data string) ([]byte, *event.Invalid)
}

var kinds setting.Kinds[Kind]

// Carries returns advice if a name is the name of a service that transports messages, such as
// kafka, and not a kind of source. For any other name, it returns "".
func Carries(name string) string {
	switch name {
	case "activemq", "eventbridge", "kafka", "kinesis", "mq", "msk", "pipes", "rabbitmq", "sns", "sqs":
		return name + " only transports messages: write the kind of their content (docs/sources/README.md)"
	}
	return ""
}

// Register makes a kind known to the settings. It panics if the name is taken or the description
// contradicts itself.
func Register(k Kind) { kinds.Add(k.Kind, k) }

// Lookup returns the kind of that name, or false if no package registered it.
func Lookup(name string) (Kind, bool) { return kinds.Lookup(name) }

// Kinds returns the names of the kinds that are registered, sorted.
func Kinds() []string { return kinds.Names() }
