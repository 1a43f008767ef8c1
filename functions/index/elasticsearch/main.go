// SPDX-License-Identifier: Apache-2.0

// Elasticsearch is the Lambda function behind the state machine of a sink of this kind: see
// functions.Index. It links no other kind.
package main

import (
	"github.com/lullhq/lull/functions"
	_ "github.com/lullhq/lull/source/builtin"

	_ "github.com/lullhq/lull/sink/elasticsearch"
)

func main() { functions.Index() }
