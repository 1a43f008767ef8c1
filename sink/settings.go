// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"net/netip"
	"time"

	"github.com/lullhq/lull/setting"
)

// Settings are the settings of one sink: the settings that every kind of sink has, and the options
// of its kind.
type Settings struct {
	// Kind is the name of the kind of sink; required.
	Kind string `json:"kind"`
	// URL is the address of a sink that outlives the process; required for a kind with
	// [Kind.Schemes], empty for all other kinds.
	URL string `json:"url"`
	// Index is the name of the index; {collection} is replaced by the collection's name. Required
	// if [Kind.NeedsIndex]; default for other kinds: "lull-{collection}".
	Index string `json:"index"`
	// LiveQueue is the name of an SQS queue that exists already and becomes the sink's live queue
	// (docs/deploy.md says which attributes the queue must have). Empty means that the stack
	// creates the queue.
	LiveQueue string `json:"liveQueue"`
	// Versions says whether the sink itself compares fences. Nil means that the sink compares
	// fences if its kind can.
	Versions *bool `json:"versions"`
	// ApplyDelay is how long the sink may still apply a request after lull hung up. Nil means 0s
	// for a sink with versions, and the default of its kind for another sink.
	ApplyDelay *time.Duration `json:"applyDelay"`
	// Unchanged says what happens to a document whose bytes the sink already has: "write" or
	// "keep". Default "write".
	Unchanged Unchanged `json:"unchanged"`
	// Generation is a text that an operator changes so that lull writes every document again. A
	// document that was committed under another generation does not count as unchanged. For a sink
	// that cannot recognise its index, unchanged: keep needs it. Default: empty.
	Generation string `json:"generation"`
	// Refresh is how long after a write, at the latest, a search finds it: the refresh interval of the
	// index. It is a promise of the operator, for programs that cannot ask the engine. Nil means the
	// promise of the kind ([Capabilities.AtOnce]), or that nothing is promised.
	Refresh *time.Duration `json:"refresh"`
	// Auth is how requests are authenticated.
	Auth Auth `json:"auth"`
	// BulkDocuments is the largest number of documents in one bulk request. Default 500, unless the
	// kind of sink has another default.
	BulkDocuments int `json:"bulkDocuments"`
	// BulkBytes is the largest size of one bulk request; a larger document is sent alone. Default
	// 5MB.
	BulkBytes setting.Size `json:"bulkBytes"`
	// MaxDocumentsPerSecond limits how many documents per second all flights together send to the
	// sink. The unit is a thousandth of a document per second. Nil means that there is no limit.
	MaxDocumentsPerSecond *setting.Rate `json:"maxDocumentsPerSecond"`
	// MaxConcurrency limits how many invocations of the sink's index function run at the same time.
	// Nil means the stack's setting for all sinks.
	MaxConcurrency *int `json:"maxConcurrency"`

	// Options are the options of the kind, of the same struct type as [Kind.Options]. Nil means the
	// defaults.
	Options any `json:"-"`
}

// Unchanged says what lull does with a document whose bytes the sink already has.
type Unchanged string

// The values of Settings.Unchanged.
const (
	Write Unchanged = "write" // the document is written again
	Keep  Unchanged = "keep"  // the document is committed without a write
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

// Auth says how requests to a sink are authenticated. An Auth says where a secret is stored, and
// never contains the secret.
type Auth struct {
	// Kind is "none", "basic", "key" or "sigv4". Default "none".
	Kind AuthKind `json:"kind"`
	// SecretARN is the ARN of a secret. For the kind basic, the secret has the fields username and
	// password. For the kind key, the secret has the field key, or the secret is only the key.
	SecretARN string `json:"secretARN"`
	// KeyEnv names the environment variable that contains the key, for the kind key without
	// SecretARN.
	KeyEnv string `json:"keyEnv"`
	// UserEnv and PasswordEnv name the environment variables that contain the user and the
	// password, for the kind basic without SecretARN.
	UserEnv     string `json:"userEnv"`
	PasswordEnv string `json:"passwordEnv"`
	// Region is the region to sign for, for the kind sigv4. Empty means the region of the function.
	Region string `json:"region"`
	// Service is the service to sign for, for the kind sigv4: "es", "aoss" for a serverless
	// collection, or "rds-db" for a database. Empty means the service that the kind of sink names,
	// or "es".
	Service string `json:"service"`
}

// Capabilities are what a sink can do. The protocol's times and the suite in package sinktest
// follow from the capabilities.
type Capabilities struct {
	// Versions says that the sink refuses a write whose fence is smaller than the stored fence
	// ([Newer]).
	Versions bool
	// ApplyDelay is how long a sink without versions may still apply a request after the caller
	// hung up. Every lease is longer by this time. 0 means [DefaultApplyDelay].
	ApplyDelay time.Duration
	// MaxDocuments is the largest number of documents in one request, such as 1 for an engine that
	// takes one document a call. 0 means that only bulkDocuments limits a request.
	MaxDocuments int
	// MinInterval is the shortest time between two writes of one document that the engine accepts.
	// 0 means that there is no limit.
	MinInterval time.Duration
	// AtOnce says that a search finds a write as soon as Write has returned.
	AtOnce bool
	// Generation says that the sink is a [Generator]. For any other sink, unchanged: keep needs the
	// setting generation.
	Generation bool
	// WriteOnly says that the sink is not a [Reader]. A collection of such a sink cannot be verified.
	WriteOnly bool
}

// DefaultApplyDelay is the apply delay of a sink without versions if its kind does not set an apply
// delay.
const DefaultApplyDelay = 30 * time.Second

// Capabilities returns what the sink can do with these settings. A kind that is not registered in
// this process counts as a kind without versions, unless the settings say otherwise. The lease is
// then longer, which is the safe choice.
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

// RefreshInterval returns how long after a write, at the latest, a search finds it, or false if
// neither the settings nor the kind promise it.
func (s Settings) RefreshInterval() (time.Duration, bool) {
	if s.Refresh != nil {
		return *s.Refresh, true
	}
	return 0, s.Capabilities().AtOnce
}

// Loopback reports whether requests to a host stay on this machine. The host has no port.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
