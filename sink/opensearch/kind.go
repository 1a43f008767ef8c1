// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"fmt"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// Name is the name of this kind of sink in the settings.
const Name = "opensearch"

// Settings are the options that only this kind has.
type Settings struct {
	// Serverless says that the engine is a serverless collection, which counts as a sink without
	// versions. Default false.
	Serverless bool `json:"serverless"`
}

// serviceServerless is the name of the AWS service for which requests to a serverless collection
// are signed.
const serviceServerless = "aoss"

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{
			Name: Name, Doc: "OpenSearch 2.x, Amazon OpenSearch Service and its serverless collections.",
			Options: Settings{},
			Settings: []setting.Setting{
				setting.Flag("serverless", "A serverless collection, which counts as a sink without versions."),
			},
		},
		Schemes:    []string{"http", "https"},
		NeedsIndex: true,
		Capabilities: func(s sink.Settings) sink.Capabilities {
			return sink.Capabilities{Versions: !serverless(s), Generation: !serverless(s)}
		},
		Complete: complete,
		Check:    check,
		Open:     open,
	})
}

func serverless(s sink.Settings) bool {
	own, ok := s.Options.(Settings)
	return ok && own.Serverless
}

func complete(s sink.Settings) sink.Settings {
	if s.Auth.Kind == sink.AuthSigV4 && s.Auth.Service == "" && serverless(s) {
		s.Auth.Service = serviceServerless
	}
	return s
}

func check(s sink.Settings) []setting.Problem {
	fits := s.Auth.Service == "es"
	if serverless(s) {
		fits = s.Auth.Service == serviceServerless
	}
	if s.Auth.Kind != sink.AuthSigV4 || fits {
		return nil
	}
	return []setting.Problem{{
		Setting: "auth.service", Value: s.Auth.Service,
		Problem: fmt.Sprintf("does not fit serverless: %t", serverless(s)),
		Fix:     "write es for a domain, aoss for a serverless collection",
	}}
}

func open(_ context.Context, s sink.Settings, env sink.Environment) (sink.Sink, error) {
	return New(Options{
		URL: s.URL, Index: s.Index, Collections: env.Collections, BulkDocuments: s.BulkDocuments,
		BulkBytes: int64(s.BulkBytes), Versions: s.Capabilities().Versions, Serverless: serverless(s),
		// a separate template, because several sinks may write to one cluster
		Authenticate: env.Authenticate, Template: env.Stack + "-" + env.Name,
	})
}
