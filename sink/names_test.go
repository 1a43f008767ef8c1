// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

func TestNamesGoThereAndBack(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, index string
		want           event.Collection
		ok             bool
	}{
		{"{collection}", "content", "content", true},
		{"{collection}", ".opendistro", "", false},
		{"{collection}", "Upper", "", false},
		{"lull-{collection}-v1", "lull-content-v1", "content", true},
		{"lull-{collection}-v1", "lull--v1", "", false},
		{"lull-{collection}-v1", "lull-v1", "", false},
		{"lull-{collection}-v1", "other-content-v1", "", false},
		{"docs", "docs", "only", true},
		{"docs", "docs-2", "", false},
	}
	for _, tt := range tests {
		n, err := sink.NewNames(tt.pattern, []event.Collection{"only"})
		if err != nil {
			t.Fatal(err)
		}
		c, ok := n.Collection(tt.index)
		if ok != tt.ok || ok && c != tt.want {
			t.Errorf("%s in %s: %q, %t", tt.index, tt.pattern, c, ok)
		}
		if ok {
			if index, ok := n.Index(c); !ok || index != tt.index {
				t.Errorf("index of %s in %s: %s, %t", c, tt.pattern, index, ok)
			}
		}
	}
}
