// Package sink is the seam to search engines: where documents are written.
//
// A sink with versions refuses a write with a smaller fence than the one it holds ([Newer]), for as
// long as it remembers the document. An equal fence is applied again. A sink without versions
// applies whatever comes last. lull then needs the lease to outlive every request, and the time in
// which the sink may still apply one after we hung up (applyDelay).
//
// # Your own kind of sink
//
// A kind of sink is one package. It implements [Sink], and [Reader], [Sampler] and [Preparer] if it
// can. An init function calls [Register] with a [Kind]: the name, the options with their defaults
// and bounds, what the sink can do, and how it is opened. Its table of answers says which
// [OutcomeKind] each answer of the engine becomes: see Answers in package sinktest. The settings
// file, its documentation and the protocol's times follow from the Kind. Package sinktest is the
// suite that every sink passes.
//
// A program knows the kinds that it imports. Build your own index function (package functions),
// your own app of package infra and your own command line (package command). The other functions do
// not need to link the kind, because the app writes its facts into their settings.
// examples/outoftree in the repository is such a module.
//
// # What may change
//
// This package is v0, as setting, event, source, functions and sinktest are: names and signatures
// may change in any version, and the changelog says so. These needs are known, and the seam has
// room for them without a change to the sinks that exist:
//
//   - Outcomes for a whole request: such a sink gives every op of the request the same [Outcome]. A
//     field of Capabilities will say so. index then halves a refused request until it finds the
//     document to blame, as opensearch already does itself.
//   - Applied later: an OutcomeKind for "accepted, ask again", and an optional interface that says
//     later what happened to the request. Decision 0054 says what else that needs. Until then such
//     a sink waits inside Write, or answers [Unknown].
//   - Without versions: Capabilities already say so.
package sink
