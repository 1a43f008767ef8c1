// SPDX-License-Identifier: Apache-2.0

// Package command is lull's command line. The program cmd/lull calls it, and links lull's own kinds
// of sinks and sources.
//
// If a stack uses a kind that you wrote, it needs a program that links this kind, too. Your module
// builds the program from a main package like this one:
//
//	import (
//		"github.com/lullhq/lull/command"
//
//		_ "example.org/search/mysink"
//	)
//
//	func main() { command.Main() }
//
// The program has every command of lull. The package of your kind registers the kind in its init
// function, so every command reads, checks and opens it as one of lull's own. A program without the
// kind can still operate a deployed stack. But it can neither check the settings of the kind nor
// open the sink.
//
// This package is v0, as sink and source are.
package command
