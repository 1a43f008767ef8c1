// SPDX-License-Identifier: Apache-2.0

// Index is lull's index function with the kinds of this module.
package main

import (
	"github.com/lullhq/lull/functions"

	_ "example.org/outoftree/ndjson"
	_ "example.org/outoftree/wiki"
)

func main() { functions.Index() }
