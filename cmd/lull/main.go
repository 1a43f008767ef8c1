// SPDX-License-Identifier: Apache-2.0

// Command lull runs lull on one machine and talks to its stacks.
package main

import "github.com/lullhq/lull/command"

func main() { command.Main() }
