// Package layering holds no code, only a test: it fails when a package links
// what its layer must not.
//
// The layers, from the inside out:
//
//	internal/shard                the model: pure, imports nothing of ours
//	nouns                         event, queue, flight, sink, letter, ...: types and seams
//	receive, index, prune, dlq    use cases: they carry out the model's decisions on seams
//	memory, dynamodb, sqs, ...    the halves that fill the seams
//	functions/*, cmd/lull, infra  wiring
//
// The linter (depguard) says the same about direct imports while one types.
// This test asks the go command what is really linked, because a use case that
// reaches an AWS client through two other packages carries it into four
// functions all the same.
package layering
