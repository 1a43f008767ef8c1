// SPDX-License-Identifier: Apache-2.0

package s3_test

import (
	"testing"

	_ "github.com/lullhq/lull/source/s3"
	"github.com/lullhq/lull/source/sourcetest"
)

var options = sourcetest.Options{Settings: `
sources:
  s3: {kind: s3}
  s3-strip: {kind: s3, s3: {stripPrefix: docs/, stripSuffix: .json}}
defaultSource: s3
payload:
  allow: [{bucket: open-bucket}, {bucket: shared-bucket, prefix: in/}]
`}

func TestSource(t *testing.T) { sourcetest.Run(t, options) }

func FuzzDecode(f *testing.F) { sourcetest.Fuzz(f, options) }
