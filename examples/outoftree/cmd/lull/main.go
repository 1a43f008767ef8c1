// SPDX-License-Identifier: Apache-2.0

// Lull is lull's command line with the kinds of this module.
package main

import (
	"github.com/lullhq/lull/command"

	_ "example.org/outoftree/ndjson"
	_ "example.org/outoftree/wiki"
)

func main() { command.Main() }
