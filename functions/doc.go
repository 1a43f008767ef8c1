// Package functions holds the main loops of the four Lambda functions.
//
// The programs below this folder call them with the built-in kinds. Index has one program for each
// kind of sink. A module that you write calls them with its own kinds, for example in the main
// package of its index function:
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
// neither. Build the four programs into receive, index, prune and dlq of one folder, each with the
// name bootstrap, and name the folder in infra.Props.AssetDir. They read the stack's settings from
// config.json, which is in the same folder.
//
// This package is v0, as sink and source are.
package functions
