// SPDX-License-Identifier: Apache-2.0

// Dlq is lull's dlq function with the sources of this module. It links no kind of sink.
package main

import (
	"github.com/lullhq/lull/functions"

	_ "example.org/outoftree/wiki"
)

func main() { functions.DLQ() }
