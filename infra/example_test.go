// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"testing"

	"github.com/lullhq/lull/infra"
)

// The example on the page about pipes can be deployed.
func TestTheUpstreamsOfThePageAreGood(t *testing.T) {
	t.Parallel()
	c := settings(t, "sinks:\n  search: {kind: opensearch, url: 'https://search.example.org', index: 'lull-{collection}'}\n")
	if err := (&infra.Props{Config: c, StateOnly: true, Upstreams: upstreams()}).Validate(); err != nil {
		t.Error(err)
	}
}
