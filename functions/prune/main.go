// SPDX-License-Identifier: Apache-2.0

// Prune is the Lambda function behind a sink's rule: see functions.Prune.
package main

import (
	"github.com/lullhq/lull/functions"
)

func main() { functions.Prune() }
