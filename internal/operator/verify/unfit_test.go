// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// A source whose messages cannot name one document cannot be asked for a repair.
func TestACollectionWhoseSourceCannotNameADocumentIsUnfit(t *testing.T) {
	t.Parallel()
	for kind, unfit := range map[string]bool{"native": false, "govuk": false, "s3": true} {
		fetch := &source.Fetch{URL: address + "{id}", Version: "/payload_version"}
		if kind == "s3" {
			fetch.Version = ""
		}
		c := &config.Config{
			Sinks:       map[string]config.Sink{"search": {Kind: "memory"}},
			Sources:     map[string]config.Source{"cms": {Kind: kind, Collections: []string{"content"}, Fetch: fetch}},
			Collections: map[string]config.Collection{"content": {Verify: &config.Verify{}}},
		}
		c.Complete()
		got, err := verify.Unfit(c)
		if err != nil || (got["content"] != "") != unfit {
			t.Errorf("%s: got %v, %v", kind, got, err)
		}
	}
}
