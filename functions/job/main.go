// SPDX-License-Identifier: Apache-2.0

// Job is the Lambda function that does operators' work by a schedule: see package work. It links
// every kind of sink that can be deployed, because a stack has one for all its sinks.
package main

import (
	"github.com/lullhq/lull/functions/work"
	_ "github.com/lullhq/lull/source/builtin"

	_ "github.com/lullhq/lull/sink/elasticsearch"
	_ "github.com/lullhq/lull/sink/opensearch"
	_ "github.com/lullhq/lull/sink/postgres"
	_ "github.com/lullhq/lull/sink/typesense"
	_ "github.com/lullhq/lull/sink/vertex"
	_ "github.com/lullhq/lull/sink/webhook"
)

func main() { work.Job() }
