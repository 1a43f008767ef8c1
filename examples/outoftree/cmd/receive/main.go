// SPDX-License-Identifier: Apache-2.0

// Receive is lull's receive function with the sources of this module. It links no kind of sink.
package main

import (
	"github.com/lullhq/lull/functions"

	_ "example.org/outoftree/wiki"
)

func main() { functions.Receive() }
