package config

import "time"

// SinkKind is a kind of search engine.
type SinkKind string

// The kinds of sinks. Only opensearch outlives the process, so only it may be deployed.
const (
	SinkBleve      SinkKind = "bleve"
	SinkMemory     SinkKind = "memory"
	SinkOpenSearch SinkKind = "opensearch"
)

// AuthKind is how requests to a sink are authenticated.
type AuthKind string

// The kinds of authentication.
const (
	AuthNone  AuthKind = "none"
	AuthBasic AuthKind = "basic"
	AuthSigV4 AuthKind = "sigv4"
)

// Sink is one place where documents are written.
type Sink struct {
	// Kind is the search engine; required.
	Kind SinkKind `json:"kind"`
	// URL is the engine's address; required for opensearch, empty for the others.
	URL string `json:"url"`
	// Index is the name of the index; {collection} stands for the collection's name. Default
	// "{collection}".
	Index string `json:"index"`
	// Versions says whether the sink compares the fence itself. Nil means by kind: true for all
	// three, false where Serverless.
	Versions *bool `json:"versions"`
	// ApplyDelay is how long the sink may still apply a request after we hung up. Nil means 0s with
	// versions, 30s without.
	ApplyDelay *time.Duration `json:"applyDelay"`
	// Auth is how requests are authenticated.
	Auth Auth `json:"auth"`
	// BulkDocuments is the most documents of one bulk request. Default 500.
	BulkDocuments int `json:"bulkDocuments"`
	// BulkBytes is the most bytes of one bulk request; a larger document goes alone. Default 5MB.
	BulkBytes Size `json:"bulkBytes"`
	// Serverless marks a serverless collection, which counts as a sink without versions. Default
	// false.
	Serverless bool `json:"serverless"`
}

// Auth is how requests to a sink are authenticated. It names where a secret is, never the secret.
type Auth struct {
	// Kind is "none", "basic" or "sigv4". Default "none".
	Kind AuthKind `json:"kind"`
	// SecretARN is a secret with the fields username and password, for basic.
	SecretARN string `json:"secretARN"`
	// UserEnv and PasswordEnv name the environment variables that hold them, for basic without
	// SecretARN.
	UserEnv     string `json:"userEnv"`
	PasswordEnv string `json:"passwordEnv"`
	// Region is the region to sign for, for sigv4. Empty means the function's own.
	Region string `json:"region"`
	// Service is the service to sign for, for sigv4: "es", or "aoss" for a serverless collection.
	// Empty means by Serverless.
	Service string `json:"service"`
}

// settleWithoutVersions is the default ApplyDelay of a sink without versions.
const settleWithoutVersions = 30 * time.Second

// HasVersions reports whether the sink refuses a write whose fence is smaller than the one it
// holds.
func (s Sink) HasVersions() bool {
	if s.Serverless {
		return false
	}
	if s.Versions != nil {
		return *s.Versions
	}
	return s.Kind == SinkBleve || s.Kind == SinkMemory || s.Kind == SinkOpenSearch
}

// Delay returns how long the sink may still apply a request after we hung up: ApplyDelay, or its
// default.
func (s Sink) Delay() time.Duration {
	if s.ApplyDelay != nil {
		return *s.ApplyDelay
	}
	if s.HasVersions() {
		return 0
	}
	return settleWithoutVersions
}
