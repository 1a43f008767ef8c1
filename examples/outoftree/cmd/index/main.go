// Index is lull's index function with the sinks of this module.
package main

import (
	"github.com/lullhq/lull/functions"

	_ "example.org/outoftree/ndjson"
)

func main() { functions.Index() }
