// Package elasticsearch is the sink for Elasticsearch 8 and 9. It is the sink of package opensearch
// with that product's ways: both speak one API, and a bulk request with external versions is the
// same in both.
//
// It sends an API key (auth.kind: key) or a password (basic). A kind of sink for one product
// refuses the other, before anything is written: Elasticsearch names itself in a header of every
// answer.
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

// Name is what the settings call this kind of sink.
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
		Template: env.Stack + "-" + env.Name, // of its own: several may write to one cluster
	})
}

// addKey sends an API key: the text that Elasticsearch calls encoded, or ID:KEY, which that is made
// of.
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
