// SPDX-License-Identifier: Apache-2.0

// Searchable is the Lambda function behind the stack's URL: see functions.Searchable.
package main

import "github.com/lullhq/lull/functions"

func main() { functions.Searchable() }
