// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/lullhq/lull/sink"
	vertexsink "github.com/lullhq/lull/sink/vertex"
)

// A sink that cannot recognise its index has other content after a change of its kind's settings:
// nothing may be kept under the former ones.
func TestTheOptionsOfANamedIndexAreInItsGeneration(t *testing.T) {
	t.Parallel()
	of := func(content string) string {
		c := Default()
		c.Sinks = map[string]Sink{"search": {
			Kind: vertexsink.Name, Generation: "one", Unchanged: sink.Keep,
			Options: vertexsink.Settings{Vertex: vertexsink.Store{Content: content}},
		}}
		return c.Generation("content", "search")
	}
	if again := of("/body"); of("/text") == again || of("/body") != again {
		t.Errorf("got %q and %q", of("/body"), of("/text"))
	}
}
