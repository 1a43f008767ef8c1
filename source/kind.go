package source

import (
	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
)

// Kind is one upstream's format. Its package registers it in an init function, and a program that
// imports the package, if only for that, can decode the format.
type Kind struct {
	setting.Kind

	// Class is how versions compare where the settings name no class.
	Class Class
	// Versioned says that every message has a version of Class. The settings may then name neither
	// another class nor noVersion: arrival or position.
	Versioned bool
	// OwnDocument says that the kind decides by itself what becomes the document. The settings may
	// then have no projection.
	OwnDocument bool
	// Check returns what contradicts itself in the settings, beyond the bounds of each. Nil means
	// that nothing can.
	Check func(Settings) []setting.Problem
	// New makes the format of one source. Its errors name the setting that is wrong.
	New func(*Rules) (Format, error)
	// Lines names the source that decodes the lines of the objects that messages of the kind name.
	// It returns "" if such an object is one document. Nil means that it always is.
	Lines func(Settings) string
	// Resync marks a body as part of a resync run. If collection is not empty, it also sets the
	// collection. Nil means that messages of the kind name neither run nor collection. They are
	// then [Wrapped], and the format reads the run with [Draft.InRun].
	Resync func(s Settings, body, run, collection string) (string, error)
	// Example makes messages of the kind for people to try. It is optional, but recommended.
	Example Example
}

// Format decodes the messages of one source. It must be safe for concurrent use, and must not panic
// on any input. Package sourcetest tests that, and the promises of this package.
type Format interface {
	// Decode reads one body, which is one JSON value without its envelopes. The answer must be a
	// function of the body. It is one of three: a Draft, a Draft that says why the body is skipped, or
	// an Invalid. An Invalid names the field that is wrong, and comes with the Draft as far as it is
	// known.
	Decode(b event.Body) (Draft, *event.Invalid)
	// Document makes the JSON object to write, from Draft.Data or from the content at Draft.Ref.
	// lull calls it once for each write. [Rules.Document] is enough for most formats.
	Document(data string) ([]byte, *event.Invalid)
}

var kinds setting.Kinds[Kind]

// Carries returns advice if a kind is the name of a carrier of messages, such as kafka. It is empty
// for any other name.
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
