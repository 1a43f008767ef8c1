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

	// Schemes are what the sink's url may begin with, such as "https". A kind without any lives in
	// the process: it has no url, it does not authenticate and it cannot be deployed.
	Schemes []string
	// Address is an example of an address, for messages and for the settings that `lull new` writes.
	// Empty means search.example.org, with the last of the schemes. See [Kind.Example].
	Address string
	// NeedsIndex says that the settings must name the index: there may be indices of others, and a
	// message names the collection.
	NeedsIndex bool
	// InFolder says that a sink in the process keeps its documents in Environment.Folder.
	InFolder bool
	// Auths are the kinds of authentication that it takes beside none. Nil means basic and sigv4.
	Auths []AuthKind
	// BulkDocuments is the default of bulkDocuments. 0 means 500.
	BulkDocuments int
	// Capabilities are what a sink can do with these settings, whatever Versions and ApplyDelay
	// say. Nil means the zero Capabilities.
	Capabilities func(Settings) Capabilities
	// Complete fills in what is empty and follows from the other settings. Nil means that nothing
	// does.
	Complete func(Settings) Settings
	// Check returns what contradicts itself in the settings, beyond the bounds of each. Nil means
	// that nothing can.
	Check func(Settings) []setting.Problem
	// Open returns a sink of this kind. It sends nothing: a sink that cannot be reached fails in
	// Ping and Write. Where the sink has a Close method, whoever opened it calls that in the end.
	Open func(context.Context, Settings, Environment) (Sink, error)
}

// Environment is what a sink is opened with beside its settings.
type Environment struct {
	// Stack and Name are the names of the stack and of the sink in the settings.
	Stack, Name string
	// Collections are those that are known to be written here, sorted. A kind may be asked to write
	// others, unless its index is for one collection.
	Collections []event.Collection
	// Authenticate adds the credentials that auth names to a request. Call it for every request,
	// right before it is sent: where it fails nothing must be sent. Nil means that there are no
	// credentials.
	Authenticate func(*http.Request) error
	// Key gives the secret text that auth names: an API key, or what a kind signs with. Call it for
	// every request: it is read anew now and then, so that a rotated secret is taken up. Its errors do
	// not quote it, and nor may yours. Nil means that auth is not of the kind key.
	Key func(context.Context) (string, error)
	// Login is for protocols other than HTTP. Nil means that auth is neither basic nor sigv4.
	Login Login
	// Folder is where a kind with InFolder keeps its documents; empty for the others.
	Folder string
}

// Login gives the name and the password of a user who connects to address, which is "host:port".
// With auth basic they are what its secret holds. With sigv4 the password is a token, signed for
// the user given, that lets connect for 15 minutes. Call it for every connection. Its errors quote
// no secret.
type Login func(ctx context.Context, address, user string) (name, password string, err error)

var kinds setting.Kinds[Kind]

// Register makes a kind known to the settings. It panics where the name is taken or the description
// contradicts itself.
func Register(k Kind) { kinds.Add(k.Kind, k) }

// Lookup returns the kind of that name, or false where no package registered it.
func Lookup(name string) (Kind, bool) { return kinds.Lookup(name) }

// Kinds returns the names of the kinds that are registered, sorted.
func Kinds() []string { return kinds.Names() }

// Deployable reports whether a sink of this kind outlives the process.
func (k Kind) Deployable() bool { return len(k.Schemes) > 0 }

// Authentications are the kinds of authentication that it takes beside none.
func (k Kind) Authentications() []AuthKind {
	if k.Auths == nil {
		return []AuthKind{AuthBasic, AuthSigV4}
	}
	return k.Auths
}

// Example is an address that a sink of this kind may have; empty for one that lives in the process.
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
// `lull init` and `lull dev` do it.
type Preparer interface {
	// Prepare may be called again at any time. What exists keeps its content.
	Prepare(ctx context.Context) error
}
