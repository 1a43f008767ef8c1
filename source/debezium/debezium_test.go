// SPDX-License-Identifier: Apache-2.0

package debezium_test

import (
	"testing"

	_ "github.com/lullhq/lull/source/debezium"
	"github.com/lullhq/lull/source/sourcetest"
)

var options = sourcetest.Options{Settings: `
sources:
  debezium: {kind: debezium}
  debezium-keyed: {kind: debezium, class: time, debezium: {key: /after/id, version: /source/ts_ms}}
  mysql: {kind: debezium, class: int, debezium: {binlog: true}}
  sequence: {kind: debezium, class: int, debezium: {sequence: true}}
  projected: {kind: debezium, projection: [/id, /title]}
  fetched: {kind: debezium, fetch: {url: "https://cms.example.org/{id}"}}
  debezium-empty: {kind: debezium, debezium: {version: ""}}
defaultSource: debezium
`}

func TestSource(t *testing.T) { sourcetest.Run(t, options) }

func FuzzDecode(f *testing.F) { sourcetest.Fuzz(f, options) }
