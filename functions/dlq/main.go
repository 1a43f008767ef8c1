// SPDX-License-Identifier: Apache-2.0

// Dlq is the Lambda function behind a sink's dead-letter queue: see functions.DLQ.
package main

import (
	"github.com/lullhq/lull/functions"
	_ "github.com/lullhq/lull/source/builtin"
)

func main() { functions.DLQ() }
