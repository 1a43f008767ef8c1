// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"testing"

	_ "github.com/lullhq/lull/source/native"
	"github.com/lullhq/lull/source/sourcetest"
)

var options = sourcetest.Options{Settings: `
sources:
  native: {kind: native}
  native-arrival: {kind: native, noVersion: arrival}
  native-epoch: {kind: native, epoch: 7, collection: restored}
  native-seq: {kind: native, class: seq}
  native-time: {kind: native, class: time}
  native-lsn: {kind: native, class: lsn}
  native-lex: {kind: native, class: lex}
  native-projected: {kind: native, projection: [/title, /details/body, /details/rank, /tags/1, /a~1b/c~0d]}
defaultSource: native
payload:
  allow: [{bucket: open-bucket}, {bucket: shared-bucket, prefix: in/}, {bucket: other-bucket, sources: [native-seq]}]
  httpHosts: [assets.example.org]
`}

func TestSource(t *testing.T) { sourcetest.Run(t, options) }

func FuzzDecode(f *testing.F) { sourcetest.Fuzz(f, options) }
