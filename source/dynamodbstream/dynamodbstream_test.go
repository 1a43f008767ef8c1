// SPDX-License-Identifier: Apache-2.0

package dynamodbstream_test

import (
	"testing"

	_ "github.com/lullhq/lull/source/dynamodbstream"
	"github.com/lullhq/lull/source/sourcetest"
)

var options = sourcetest.Options{Settings: `
sources:
  stream: {kind: dynamodb-stream}
  stream-projected: {kind: dynamodb-stream, projection: [/title]}
defaultSource: stream
`}

func TestSource(t *testing.T) { sourcetest.Run(t, options) }

func FuzzDecode(f *testing.F) { sourcetest.Fuzz(f, options) }
