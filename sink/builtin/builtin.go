// Package builtin links the kinds of sinks that lull has and that can be deployed. Import it for
// that alone. A new kind is one package and one line here, and a test of package functions says
// what else it needs: a program of index that links it.
//
// The kinds that live in one process are in package local below this one: a function must not link
// them.
package builtin

import (
	_ "github.com/lullhq/lull/sink/elasticsearch" // kind elasticsearch
	_ "github.com/lullhq/lull/sink/opensearch"    // kind opensearch
	_ "github.com/lullhq/lull/sink/postgres"      // kind postgres
	_ "github.com/lullhq/lull/sink/typesense"     // kind typesense
	_ "github.com/lullhq/lull/sink/vertex"        // kind vertex
	_ "github.com/lullhq/lull/sink/webhook"       // kind webhook
)
