// Package sink is the seam to search engines: where documents are written.
//
// A sink with versions refuses a write with a smaller fence than the one it holds ([Newer]), for as
// long as it remembers the document. An equal fence is applied again. A sink without versions
// applies whatever comes last. lull then needs the lease to outlive every request, and the time in
// which the sink may still apply one after we hung up (applyDelay).
//
// # A sink of your own
//
// A kind of sink is one package. It implements [Sink], and [Reader], [Sampler] and [Preparer] where
// it can, and an init function calls [Register] with a [Kind]: the name, the options with their
// defaults and bounds, what the sink can do, and how it is opened. Its table of answers says which
// [OutcomeKind] each answer of the engine becomes: see Answers in package sinktest. The settings
// file, its documentation and the protocol's times follow from the Kind. Package sinktest is the
// suite that every sink passes.
//
// A program knows the kinds that it imports. Build your own index function (package functions),
// your own app of package infra and, for your laptop, nothing else. The other functions take a kind
// that they do not link as the app wrote it. examples/outoftree in the repository is such a module.
//
// # What may change
//
// This package is v0, as setting, event, source, functions and sinktest are: names and signatures
// may change in any version, and the changelog says so. These needs are known, and the seam has
// room for them without a change to the sinks that exist:
//
//   - Outcomes for a whole request: such a sink gives every op of the request the same [Outcome]. A
//     field of Capabilities will say so. index then cuts a refused request in halves to find the
//     document to blame, as opensearch does by itself.
//   - Applied later: an OutcomeKind for "accepted, ask again", and an optional interface that is
//     asked what became of it: decision 0054 says what else it takes. Until then such a sink waits
//     inside Write, or answers [Unknown].
//   - No versions: Capabilities say it today.
package sink
