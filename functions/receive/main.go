// SPDX-License-Identifier: Apache-2.0

// Receive is the Lambda function behind a sink's queues: see functions.Receive.
package main

import (
	"github.com/lullhq/lull/functions"
	_ "github.com/lullhq/lull/source/builtin"
)

func main() { functions.Receive() }
