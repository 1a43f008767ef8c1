// SPDX-License-Identifier: Apache-2.0

// Package builtin links every kind of sink that comes with lull and can be deployed. Import this
// package only for this effect. A new kind is one package and one line in this file. A new kind
// also needs an index function that links the kind. A test of package functions checks that.
//
// Package local, in a folder below this one, links the kinds of sinks that work in one process
// only. A Lambda function must not link those kinds.
package builtin

import (
	_ "github.com/lullhq/lull/sink/elasticsearch" // kind elasticsearch
	_ "github.com/lullhq/lull/sink/opensearch"    // kind opensearch
	_ "github.com/lullhq/lull/sink/postgres"      // kind postgres
	_ "github.com/lullhq/lull/sink/typesense"     // kind typesense
	_ "github.com/lullhq/lull/sink/vertex"        // kind vertex
	_ "github.com/lullhq/lull/sink/webhook"       // kind webhook
)
