// Package memorysink is the sink kind "memory": a search engine in the memory of one process. It is
// what `lull dev` writes to without settings, and what tests and the simulator start from.
//
// It keeps every promise of the sink seam: versions, marks, generations, rebuilding. Nothing
// survives the process. Nothing fails unless a test scripts answers or sets a rule. A [Sink] is
// safe for concurrent use. Time comes from a clock.Clock.
package memorysink
