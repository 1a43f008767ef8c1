package sink

import (
	"net/netip"
	"time"

	"github.com/lullhq/lull/setting"
)

// Settings are the settings of one sink: those that every kind has, and the options of its kind.
type Settings struct {
	// Kind names what the sink is; required.
	Kind string `json:"kind"`
	// URL is the address of a sink that outlives the process; required for a kind with
	// [Kind.Schemes], empty for the others.
	URL string `json:"url"`
	// Index is the name of the index; {collection} is replaced by the collection's name. Required
	// if [Kind.NeedsIndex]; default for other kinds: "lull-{collection}".
	Index string `json:"index"`
	// LiveQueue is the name of an SQS queue that exists already and becomes the sink's live queue
	// (docs/deploy.md says what it must be like). Empty means that the stack makes one.
	LiveQueue string `json:"liveQueue"`
	// Versions says whether the sink compares the fence itself. Nil means what its kind can do.
	Versions *bool `json:"versions"`
	// ApplyDelay is how long the sink may still apply a request after we hung up. Nil means 0s with
	// versions, otherwise the default of its kind.
	ApplyDelay *time.Duration `json:"applyDelay"`
	// Unchanged says what happens to a document whose bytes the sink already has: "write" or
	// "keep". Default "write".
	Unchanged Unchanged `json:"unchanged"`
	// Generation is a text that an operator changes to have every document written again. A commit
	// under another generation does not count as unchanged. Default none.
	Generation string `json:"generation"`
	// Auth is how requests are authenticated.
	Auth Auth `json:"auth"`
	// BulkDocuments is the most documents of one bulk request. Default 500, unless its kind says
	// otherwise.
	BulkDocuments int `json:"bulkDocuments"`
	// BulkBytes is the most bytes of one bulk request; a larger document is sent alone. Default 5MB.
	BulkBytes setting.Size `json:"bulkBytes"`
	// MaxDocumentsPerSecond is the most documents that all flights together send to the sink, in
	// thousandths a second. Nil means that there is no limit.
	MaxDocumentsPerSecond *setting.Rate `json:"maxDocumentsPerSecond"`
	// MaxConcurrency is the most invocations of its index function at once. Nil means the stack's
	// setting for all sinks.
	MaxConcurrency *int `json:"maxConcurrency"`

	// Options are the options of the kind, of the same struct type as [Kind.Options]. Nil means the
	// defaults.
	Options any `json:"-"`
}

// Unchanged is what happens to a document whose bytes the sink already has.
type Unchanged string

// The values of Settings.Unchanged.
const (
	Write Unchanged = "write" // it is written again
	Keep  Unchanged = "keep"  // it is committed without a write
)

// AuthKind is how requests to a sink are authenticated.
type AuthKind string

// The kinds of authentication.
const (
	AuthNone  AuthKind = "none"
	AuthBasic AuthKind = "basic"
	AuthSigV4 AuthKind = "sigv4"
	AuthKey   AuthKind = "key"
)

// Auth is how requests to a sink are authenticated. It names where a secret is, never the secret.
type Auth struct {
	// Kind is "none", "basic", "key" or "sigv4". Default "none".
	Kind AuthKind `json:"kind"`
	// SecretARN is a secret: with the fields username and password for basic, with the field key, or
	// of nothing but the key, for key.
	SecretARN string `json:"secretARN"`
	// KeyEnv names the environment variable that holds the key, for key without SecretARN.
	KeyEnv string `json:"keyEnv"`
	// UserEnv and PasswordEnv name the environment variables that hold them, for basic without
	// SecretARN.
	UserEnv     string `json:"userEnv"`
	PasswordEnv string `json:"passwordEnv"`
	// Region is the region to sign for, for sigv4. Empty means the function's own.
	Region string `json:"region"`
	// Service is the service to sign for, for sigv4: "es", "aoss" for a serverless collection, or
	// "rds-db" for a database.
	// Empty means what the kind says, or "es".
	Service string `json:"service"`
}

// Capabilities are what a sink can do. The protocol's times and the suite in package sinktest
// follow from them.
type Capabilities struct {
	// Versions: a write whose fence is smaller than the sink's fence is refused ([Newer]).
	Versions bool
	// ApplyDelay is how long a sink without versions may still apply a request after the caller
	// hung up. It is part of every lease. 0 means [DefaultApplyDelay].
	ApplyDelay time.Duration
	// MaxDocuments is the most documents that one request can have: 1 for an engine that takes one
	// document a call. 0 means that bulkDocuments alone bounds it.
	MaxDocuments int
	// MinInterval is the least time between two writes of one document that the engine accepts. 0
	// means that there is no limit.
	MinInterval time.Duration
	// Generation: the sink is a [Generator]. Without it, unchanged: keep is refused.
	Generation bool
}

// DefaultApplyDelay is the apply delay of a sink without versions whose kind names none.
const DefaultApplyDelay = 30 * time.Second

// Capabilities are what the sink can do with these settings. A kind that is not registered in this
// process counts as one without versions, unless the settings say otherwise. The longer lease is
// the safe choice.
func (s Settings) Capabilities() Capabilities {
	c := Capabilities{Versions: s.Versions != nil && *s.Versions}
	if kind, ok := Lookup(s.Kind); ok {
		c = kind.capabilities(s)
		c.Versions = c.Versions && (s.Versions == nil || *s.Versions)
	}
	switch {
	case s.ApplyDelay != nil:
		c.ApplyDelay = *s.ApplyDelay
	case c.Versions:
		c.ApplyDelay = 0
	case c.ApplyDelay == 0:
		c.ApplyDelay = DefaultApplyDelay
	}
	return c
}

// Loopback reports whether requests to a host, without a port, stay on this machine.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
