// SPDX-License-Identifier: Apache-2.0

// Package sink defines what a search engine must do so that lull can write documents to it. A sink
// is lull's adapter to one engine.
//
// A sink with versions stores the fence of each write. As long as such a sink remembers a document,
// the sink refuses a write with a smaller fence ([Newer]). A write with an equal fence is applied
// again. A sink without versions applies every write, also one that arrives too late. For a sink
// without versions, the lease must outlast every request. The engine may still apply a request for
// some time after lull hung up, and the lease must also outlast that time (applyDelay).
//
// # Your own kind of sink
//
// A kind of sink is one package. The package implements [Sink], and also [Reader], [Sampler] and
// [Preparer] if the engine allows that. An init function calls [Register] with a [Kind]: the name,
// the options with their defaults and bounds, what the sink can do, and how it is opened. A table
// of answers in the package says which [OutcomeKind] each answer of the engine becomes: see Answers
// in package sinktest. The settings file, its documentation and the protocol's times follow from
// the Kind. Package sinktest is the suite that every sink passes.
//
// A program can open only the kinds of sinks whose packages it imports. Build your own index
// function (package functions), your own app of package infra and your own command line (package
// command). The other functions do not need to link the kind, because the app writes the facts
// about the kind into the settings of those functions. examples/outoftree in the repository is such
// a module.
//
// # What may change
//
// This package is v0, like the packages setting, event, source, functions and sinktest: names and
// signatures may change in any version, and the changelog reports it. Three needs are known. This
// package can meet these needs without a change to existing sinks:
//
//   - One outcome for a whole request: such a sink gives every op of the request the same
//     [Outcome]. A field of Capabilities will say so. index then halves a refused request until it
//     finds the document to blame. The sink of package opensearch already does that itself.
//   - Writes that are applied later: such writes need an OutcomeKind for "accepted, ask again". An
//     optional interface would say later what happened to the request. Decision 0054 says what else
//     they need. Until then such a sink waits inside Write, or answers [Unknown].
//   - Sinks without versions: Capabilities already have a field for such sinks.
package sink
