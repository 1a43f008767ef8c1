// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// Name is the name of this kind of sink in the settings.
const Name = "postgres"

// Settings are the options that only this kind has.
type Settings struct {
	// Schema is where the tables are. Default "public".
	Schema string `json:"schema"`
	// User is the user of the database if auth.kind is none or sigv4, which do not name a user.
	// Empty means the value of the environment variable PGUSER.
	User string `json:"user"`
	// TLS is "verify-full" or "off". Default "off" if the server is on this machine, otherwise
	// "verify-full".
	TLS string `json:"tls"`
	// CAFile is a file with PEM certificates. One of these certificates must have signed the
	// certificate of the server. Empty means the certificates that the system trusts.
	CAFile string `json:"caFile"`
	// Language is the text search configuration, such as english. Default "simple".
	Language string `json:"language"`
	// RememberDeletes is how long a table remembers a deleted document, so that it refuses an older
	// version. Default 24h.
	RememberDeletes time.Duration `json:"rememberDeletes"`
	// Vector is the field of documents that holds a vector.
	Vector Vector `json:"vector"`
}

// Vector describes a field of documents that gets a column of the type vector (from the extension
// pgvector), with an index.
type Vector struct {
	// Field is a JSON pointer to an array of numbers, such as /embedding. Empty means that
	// documents have no vector.
	Field string `json:"field"`
	// Dimensions is how many numbers each vector has.
	Dimensions int `json:"dimensions"`
	// Distance is the distance that the index supports: "cosine", "l2" or "inner". Default
	// "cosine".
	Distance string `json:"distance"`
}

// Values of Settings.TLS.
const (
	tlsOff    = "off"
	tlsVerify = "verify-full"
)

var (
	namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)
	wordPattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)
	userPattern = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]{0,62})?$`)
	filePattern = regexp.MustCompile(`^(/[^\x00]{1,500})?$`)
)

const nameShape = "a name of up to 63 characters: a-z, A-Z, 0-9, _ and -; the first is not a digit or -"

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{
			Name: Name, Doc: "PostgreSQL 14 and later, with full text search, and vectors by pgvector.",
			Options: Settings{Schema: "public", Language: "simple", RememberDeletes: setting.Day, Vector: Vector{Distance: "cosine"}},
			Settings: []setting.Setting{
				setting.Text("schema", namePattern, nameShape, "The schema of the tables, which must exist."),
				setting.Text("user", userPattern, nameShape+"; or nothing",
					"The user that connects, if auth.kind is none or sigv4.").Otherwise("the value of PGUSER"),
				setting.Choice("tls", "Whether connections are encrypted and the server's certificate is checked.",
					tlsVerify, tlsOff).Otherwise("off for a server on this machine, otherwise verify-full"),
				setting.Text("caFile", filePattern, "the path of a file, or nothing",
					"A file of PEM certificates that sign the server's certificate.").Otherwise("the certificates that the system " +
					"trusts"),
				setting.Text("language", wordPattern, "the name of a text search configuration",
					"The text search configuration that splits texts into words, such as english. A change "+
						"applies only to tables that are created later."),
				setting.Duration("rememberDeletes", time.Hour, 30*setting.Day, time.Second,
					"How long a table remembers a deleted document, so that it refuses an older version."),
				setting.Pointer("vector.field", "The field that holds a vector: an array of numbers.").Otherwise("none"),
				setting.Count("vector.dimensions", 0, 2_000,
					"The number of dimensions of each vector.").Otherwise("required with vector.field"),
				setting.Choice("vector.distance", "The distance that the index of vectors is built for.", "cosine", "l2", "inner"),
			},
		},
		Schemes: []string{"postgres", "postgresql"}, Address: "postgres://search.example.org:5432/search",
		NeedsIndex: true,
		Capabilities: func(sink.Settings) sink.Capabilities {
			return sink.Capabilities{Versions: true, Generation: true, AtOnce: true}
		},
		Complete: complete,
		Check:    check,
		Open:     open,
	})
}

// serviceDatabase is the name of the AWS service for which the token of a database is signed.
const serviceDatabase = "rds-db"

func complete(s sink.Settings) sink.Settings {
	if s.Auth.Kind == sink.AuthSigV4 && s.Auth.Service == "" {
		s.Auth.Service = serviceDatabase
	}
	own, ok := s.Options.(Settings)
	if ok && own.TLS == "" {
		own.TLS = tlsVerify
		if u, err := url.Parse(s.URL); err == nil && sink.Loopback(u.Hostname()) {
			own.TLS = tlsOff
		}
		s.Options = own
	}
	return s
}

// longestTable is how many bytes a name in PostgreSQL may have. PostgreSQL truncates a longer name.
const longestTable = 63

// longestCollection is how many bytes a collection's name may have.
const longestCollection = 32

func check(s sink.Settings) (problems []setting.Problem) {
	own, _ := s.Options.(Settings)
	bad := func(name string, value any, problem, fix string) {
		problems = append(problems, setting.Problem{Setting: name, Value: value, Problem: problem, Fix: fix})
	}
	longest := strings.Replace(s.Index, sink.Placeholder, strings.Repeat("x", longestCollection), 1)
	if len(longest) > longestTable {
		bad("index", s.Index, "makes a table's name too long for a collection with the longest name, 32 characters",
			"shorten it: a table's name has 63 bytes")
	}
	signed := s.Auth.Kind == sink.AuthSigV4
	if signed && s.Auth.Service != serviceDatabase {
		bad("auth.service", s.Auth.Service, "is not the service of a database", "write "+serviceDatabase+", or remove it")
	}
	if signed && own.User == "" {
		bad("user", nil, "is missing, and auth.kind is sigv4", "write the database user that connects with the signed token")
	}
	u, err := url.Parse(s.URL)
	if err == nil && s.Auth.Kind != sink.AuthNone && own.TLS == tlsOff && !sink.Loopback(u.Hostname()) {
		bad("tls", own.TLS, "would send documents, and perhaps the password, without encryption",
			"write "+tlsVerify+", or remove it")
	}
	switch {
	case own.Vector.Field != "" && own.Vector.Dimensions == 0:
		bad("vector.dimensions", nil, "is missing, and vector.field is set", "write the number of dimensions of each vector")
	case own.Vector.Field == "" && own.Vector.Dimensions != 0:
		bad("vector.field", nil, "is missing, and vector.dimensions is set",
			"write the path of the vector, such as /embedding")
	}
	return problems
}

func open(_ context.Context, s sink.Settings, env sink.Environment) (sink.Sink, error) {
	own, _ := s.Options.(Settings)
	return New(Options{
		Settings: own, URL: s.URL, Index: s.Index, Collections: env.Collections, BulkDocuments: s.BulkDocuments,
		BulkBytes: int64(s.BulkBytes), Login: env.Login, Application: env.Stack + "-" + env.Name,
	})
}
