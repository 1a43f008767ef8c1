// SPDX-License-Identifier: Apache-2.0

// Package work has the main function of the Lambda function job, which does operators' work by a
// schedule. A stack has at most one, for all its sinks (ADR 0075).
//
// It is apart from package functions, because it links operators' commands, and the other functions
// must not. The program functions/job calls it with the built-in kinds. A module that you write
// calls it with its own kinds, for example in the main package of its job function:
//
//	import (
//		"github.com/lullhq/lull/functions/work"
//
//		_ "example.org/search/mysink"
//	)
//
//	func main() { work.Job() }
//
// What it promises: a work is bounded by the time-out of the function, and continues in a later
// invocation. Two invocations at once do no harm.
package work
