// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"net/http"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
)

// Kind is a kind of sink, such as opensearch. The package of a kind registers the kind in an init
// function. A program that imports this package can open sinks of the kind.
type Kind struct {
	setting.Kind

	// Schemes are the schemes of the sink's url, such as "https". A sink of a kind without schemes
	// runs inside the process. Such a sink has no url, does not authenticate and cannot be
	// deployed.
	Schemes []string
	// Address is an example of an address, for messages and for the settings that `lull new`
	// writes. If Address is empty, the example is search.example.org with the last of the schemes.
	// See [Kind.Example].
	Address string
	// NeedsIndex says that the settings must name the index. The engine may have indices of other
	// programs, and a message could otherwise choose one by its collection.
	NeedsIndex bool
	// InFolder says that a sink of this kind runs in the process and keeps its documents in
	// Environment.Folder.
	InFolder bool
	// Auths are the accepted kinds of authentication in addition to "none". Nil means basic and
	// sigv4.
	Auths []AuthKind
	// BulkDocuments is the default of bulkDocuments. 0 means 500.
	BulkDocuments int
	// Capabilities returns what a sink of this kind can do with the given settings. Capabilities
	// ignores the settings Versions and ApplyDelay, which are applied later. Nil means the zero
	// Capabilities.
	Capabilities func(Settings) Capabilities
	// Complete fills in empty settings whose values follow from other settings. Nil means that no
	// setting follows from another.
	Complete func(Settings) Settings
	// Check returns contradictions between settings. The bounds of each setting are checked
	// elsewhere. Nil means that settings of this kind cannot contradict each other.
	Check func(Settings) []setting.Problem
	// Open returns a sink of this kind. Open sends nothing: if the engine cannot be reached, Ping
	// and Write fail. If the sink has a Close method, the caller of Open calls Close in the end.
	Open func(context.Context, Settings, Environment) (Sink, error)
}

// Environment contains what Open needs in addition to the settings of the sink.
type Environment struct {
	// Stack is the name of the stack, and Name is the name of the sink in the settings.
	Stack, Name string
	// Collections are the collections that the settings send to this sink, sorted. A sink may also
	// get documents of other collections, unless its index is for one collection.
	Collections []event.Collection
	// Authenticate adds the credentials that the setting auth names to a request. Call Authenticate
	// for every request, right before the request is sent. If Authenticate fails, send nothing. Nil
	// means that the sink has no credentials.
	Authenticate func(*http.Request) error
	// Key returns the secret text that the setting auth names: an API key, or a key for signatures.
	// Call Key for every request. Key reads the secret again from time to time, so that a rotated
	// secret is used. The errors of Key do not quote the secret, and the errors of a sink must not
	// quote the secret either. Nil means that auth.kind is not key.
	Key func(context.Context) (string, error)
	// Login returns the user and the password, for protocols other than HTTP. Nil means that
	// auth.kind is neither basic nor sigv4.
	Login Login
	// Folder is the folder in which a sink of a kind with InFolder keeps its documents. Folder is
	// empty for all other kinds.
	Folder string
}

// Login returns the name and the password of a user who connects to address, which is "host:port".
// With auth.kind basic, both come from the secret of auth. With sigv4 the password is a token that
// is signed for the given user and accepted for 15 minutes. Call Login for every connection. The
// errors of Login do not quote a secret.
type Login func(ctx context.Context, address, user string) (name, password string, err error)

var kinds setting.Kinds[Kind]

// Register adds a kind to those that the settings can name. Register panics if the name is taken or
// if the fields of the kind contradict each other.
func Register(k Kind) { kinds.Add(k.Kind, k) }

// Lookup returns the kind with the given name, or false if no package registered such a kind.
func Lookup(name string) (Kind, bool) { return kinds.Lookup(name) }

// Kinds returns the names of the kinds that are registered, sorted.
func Kinds() []string { return kinds.Names() }

// Deployable reports whether a sink of this kind outlives the process, so that functions in Lambda
// can use it.
func (k Kind) Deployable() bool { return len(k.Schemes) > 0 }

// Authentications returns the accepted kinds of authentication in addition to "none".
func (k Kind) Authentications() []AuthKind {
	if k.Auths == nil {
		return []AuthKind{AuthBasic, AuthSigV4}
	}
	return k.Auths
}

// Example returns an address that a sink of this kind could have. Example is empty for a sink
// inside the process.
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

// Preparer is a sink that must be prepared before the first document: for example, it needs an
// index template or a table. `lull index install-template` and `lull dev --install-template` call
// Prepare.
type Preparer interface {
	// Prepare creates what the collections of the environment need, such as tables, and changes
	// nothing under any other name. Prepare may be called again at any time. Existing indices keep
	// their content. If the user has something else under such a name, Prepare does not change it,
	// or fails.
	Prepare(ctx context.Context) error
	// Preparation returns the requests that Prepare would send to an empty engine, in the engine's
	// syntax. Operators can send these requests themselves. Preparation sends nothing.
	Preparation() (string, error)
}
