// SPDX-License-Identifier: Apache-2.0

package wiki_test

import (
	"testing"

	_ "example.org/outoftree/wiki"
	"github.com/lullhq/lull/source/sourcetest"
)

var options = sourcetest.Options{Settings: `
sources:
  wiki: {kind: wiki, collection: pages}
  handbook: {kind: wiki, collection: pages, spaces: [handbook], projection: [/text]}
defaultSource: wiki
`}

// The format passes lull's test suite with the messages of testdata/decode.txt.
func TestSource(t *testing.T) { sourcetest.Run(t, options) }

func FuzzDecode(f *testing.F) { sourcetest.Fuzz(f, options) }
