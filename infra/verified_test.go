// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/config"
)

// The function job may read the secrets and buckets of the sources that it asks, and of no others.
func TestJobAsksOnlyTheSourcesOfVerifiedCollections(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Sources = map[string]config.Source{
		"cms":     {Kind: "native", Collection: "pages", Collections: []string{"pages"}},
		"prices":  {Kind: "native", Collection: "prices", Collections: []string{"prices"}},
		"archive": {Kind: "native", Collection: "pages", Collections: []string{"pages"}},
	}
	c.Collections = map[string]config.Collection{"pages": {Verify: &config.Verify{}}, "prices": {}}
	if got := verifiedSources(&c); !slices.Equal(got, []string{"archive", "cms"}) {
		t.Errorf("got %q", got)
	}
}
