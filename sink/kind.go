package sink

import (
	"context"
	"net/http"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
)

// Kind is a kind of sink, such as opensearch. Its package registers it in an init function, and a
// program that imports the package, if only for that, can open such sinks.
type Kind struct {
	setting.Kind

	// Schemes are the schemes of the sink's url, such as "https". A kind without schemes runs
	// inside the process: it has no url, it does not authenticate and it cannot be deployed.
	Schemes []string
	// Address is an example of an address, for messages and for the settings that `lull new` writes.
	// Empty means search.example.org, with the last of the schemes. See [Kind.Example].
	Address string
	// NeedsIndex says that the settings must name the index. The engine may have indices of other
	// programs, and a message could otherwise choose one by its collection.
	NeedsIndex bool
	// InFolder says that a sink in the process keeps its documents in Environment.Folder.
	InFolder bool
	// Auths are the accepted kinds of authentication in addition to none. Nil means basic and
	// sigv4.
	Auths []AuthKind
	// BulkDocuments is the default of bulkDocuments. 0 means 500.
	BulkDocuments int
	// Capabilities are what a sink can do with these settings, apart from Versions and ApplyDelay
	// in the settings. Nil means the zero Capabilities.
	Capabilities func(Settings) Capabilities
	// Complete fills in the empty settings that follow from others. Nil means that there are none.
	Complete func(Settings) Settings
	// Check returns the contradictions in the settings, beyond the bounds of each. Nil means that
	// there are none.
	Check func(Settings) []setting.Problem
	// Open returns a sink of this kind. It sends nothing: if a sink cannot be reached, Ping and
	// Write fail. If the sink has a Close method, the caller of Open calls it in the end.
	Open func(context.Context, Settings, Environment) (Sink, error)
}

// Environment is what a sink is opened with in addition to its settings.
type Environment struct {
	// Stack and Name are the names of the stack and of the sink in the settings.
	Stack, Name string
	// Collections are the collections known to be written here, sorted. A kind may be asked to
	// write others, unless its index is for one collection.
	Collections []event.Collection
	// Authenticate adds the credentials that auth names to a request. Call it for every request,
	// right before it is sent. If it fails, send nothing. Nil means that there are no credentials.
	Authenticate func(*http.Request) error
	// Key returns the secret text that auth names: an API key, or a key for signatures. Call it for
	// every request. It reads the secret again now and then, so that a rotated secret is used. Its
	// errors do not quote the secret, and yours must not either. Nil means that auth is not of the
	// kind key.
	Key func(context.Context) (string, error)
	// Login is for protocols other than HTTP. Nil means that auth is neither basic nor sigv4.
	Login Login
	// Folder is where a kind with InFolder keeps its documents; empty for the others.
	Folder string
}

// Login gives the name and the password of a user who connects to address, which is "host:port".
// With auth basic they are in its secret. With sigv4 the password is a token that is signed for the
// given user and accepted for 15 minutes. Call it for every connection. Its errors quote no secret.
type Login func(ctx context.Context, address, user string) (name, password string, err error)

var kinds setting.Kinds[Kind]

// Register makes a kind known to the settings. It panics if the name is taken or the description
// contradicts itself.
func Register(k Kind) { kinds.Add(k.Kind, k) }

// Lookup returns the kind of that name, or false if no package registered it.
func Lookup(name string) (Kind, bool) { return kinds.Lookup(name) }

// Kinds returns the names of the kinds that are registered, sorted.
func Kinds() []string { return kinds.Names() }

// Deployable reports whether a sink of this kind outlives the process.
func (k Kind) Deployable() bool { return len(k.Schemes) > 0 }

// Authentications are the accepted kinds of authentication in addition to none.
func (k Kind) Authentications() []AuthKind {
	if k.Auths == nil {
		return []AuthKind{AuthBasic, AuthSigV4}
	}
	return k.Auths
}

// Example is an address that a sink of this kind may have. It is empty for a sink inside the
// process.
func (k Kind) Example() string {
	if k.Address == "" && k.Deployable() {
		return k.Schemes[len(k.Schemes)-1] + "://search.example.org"
	}
	return k.Address
}

func (k Kind) capabilities(s Settings) Capabilities {
	if k.Capabilities == nil {
		return Capabilities{}
	}
	return k.Capabilities(s)
}

// Preparer is a sink that must be prepared before the first document: an index template, a table.
// `lull index install-template` and `lull dev --install-template` do it.
type Preparer interface {
	// Prepare may be called again at any time. Existing indices keep their content. It creates what
	// the collections of the environment need, and changes nothing under any other name. If the
	// user has something else under such a name, Prepare leaves it alone or fails.
	Prepare(ctx context.Context) error
	// Preparation is what Prepare sends to an empty engine, in the engine's syntax, for operators
	// who send it themselves. It sends nothing.
	Preparation() (string, error)
}
