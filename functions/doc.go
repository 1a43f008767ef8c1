// SPDX-License-Identifier: Apache-2.0

// Package functions has the main function of each of the four Lambda functions: receive, index,
// prune and dlq. It also has the functions feed and
// searchable, which belong to a stack.
//
// The programs below this folder call them with the built-in kinds of sources and sinks. Index has
// one program for each kind of sink. A module that you write calls them with its own kinds, for
// example in the main package of its index function:
//
//	import (
//		"github.com/lullhq/lull/functions"
//
//		_ "example.org/search/mysink"
//	)
//
//	func main() { functions.Index() }
//
// Index links the kinds of sinks. Receive, dlq and index link the kinds of sources; prune links
// neither. Build the four programs into the folders receive, index, prune and dlq of one folder,
// each with the name bootstrap. Name that one folder in infra.Props.AssetDir. The functions
// read the stack's settings from config.json in the same folder.
//
// This package is v0, as the packages sink and source are.
package functions
