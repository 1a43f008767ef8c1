// SPDX-License-Identifier: Apache-2.0

// Package elasticsearch is the sink for Elasticsearch 8 and 9. The package uses the sink of package
// opensearch, because both products have the same API for bulk requests with external versions. The
// package opensearch handles the differences between the products.
//
// This sink sends an API key (auth.kind: key) or a password (basic). Before the first write, this
// sink checks that the engine is not OpenSearch: only Elasticsearch names itself in a header of
// every answer.
package elasticsearch

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

// Name is the name of this kind of sink in the settings.
const Name = "elasticsearch"

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{
			Name: Name,
			Doc:  "Elasticsearch 8 and 9, also on Elastic Cloud; without its serverless projects.",
		},
		Schemes:    []string{"http", "https"},
		NeedsIndex: true,
		Auths:      []sink.AuthKind{sink.AuthBasic, sink.AuthKey},
		Capabilities: func(sink.Settings) sink.Capabilities {
			return sink.Capabilities{Versions: true, Generation: true}
		},
		Open: open,
	})
}

func open(_ context.Context, s sink.Settings, env sink.Environment) (sink.Sink, error) {
	authenticate := env.Authenticate
	if env.Key != nil {
		authenticate = func(r *http.Request) error { return addKey(r, env.Key) }
	}
	return opensearch.New(opensearch.Options{
		Product: opensearch.Elasticsearch,
		URL:     s.URL, Index: s.Index, Collections: env.Collections, BulkDocuments: s.BulkDocuments,
		BulkBytes: int64(s.BulkBytes), Versions: s.Capabilities().Versions, Authenticate: authenticate,
		Template: env.Stack + "-" + env.Name, // a separate template, because several sinks may write to one cluster
	})
}

// addKey adds an API key to a request. The secret is the text that Elasticsearch calls "encoded",
// or ID:KEY, which addKey encodes.
func addKey(r *http.Request, get func(context.Context) (string, error)) error {
	key, err := get(r.Context())
	if err != nil {
		return fmt.Errorf("get the API key: %w", err)
	}
	if strings.Contains(key, ":") {
		key = base64.StdEncoding.EncodeToString([]byte(key))
	}
	r.Header.Set("Authorization", "ApiKey "+key)
	return nil
}
