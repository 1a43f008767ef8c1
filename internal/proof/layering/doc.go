// Package layering holds no code, only a test: it fails when a package links what its layer must
// not, and when a package has no layer.
//
// The layers, from the inside out; a package imports its own layer and those further in:
//
//	protocol   internal/shard: pure, imports nothing of ours
//	seams      event, source, sink, queue, flight, ...: the portable types and their duties
//	use cases  receive, index, prune, dlq, ...: they carry out the protocol's decisions on seams
//	wings      internal/aws, internal/local, the kinds of sinks: each holds one half of every seam
//	proof      internal/proof and the conformance suites
//	wiring     functions, cmd, infra
//
// The linter (depguard) says the same about direct imports while you type. This test asks the go
// command what is really linked: a use case that reaches an AWS client through two other packages
// carries it into four functions all the same.
package layering
