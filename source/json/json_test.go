// SPDX-License-Identifier: Apache-2.0

package json_test

import (
	"testing"

	_ "github.com/lullhq/lull/source/json"
	"github.com/lullhq/lull/source/sourcetest"
)

var options = sourcetest.Options{Settings: `
sources:
  json:
    kind: json
    class: time
    json:
      id: /meta/id
      version: /meta/updated_at
      time: /meta/seen
      operation: /op
      deleteValues: [removed, "true"]
      collection: /meta/kind
  json-arrival: {kind: json, noVersion: arrival, json: {id: /id}}
defaultSource: json
`}

func TestSource(t *testing.T) { sourcetest.Run(t, options) }

func FuzzDecode(f *testing.F) { sourcetest.Fuzz(f, options) }
