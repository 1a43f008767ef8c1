// SPDX-License-Identifier: Apache-2.0

// Package searchable asks a stack of lull whether a search finds a version of a document.
//
//	c := searchable.Client{URL: "http://localhost:7070"} // lull dev
//	a, err := c.Wait(ctx, "content", "vienna", "7")
//
// For a deployed stack, URL is the stack's output LullSearchableUrl, and Sign is a signer of
// package searchable/sigv4. docs/searchable.md says how a stack gets that URL.
//
// What it promises:
//
//   - A yes is never too early: at the time of the answer a search finds the version, a newer one,
//     or no longer finds a document that the version deletes. [Sink.How] says how lull knows it.
//   - A yes is about all sinks of the collection, unless the key names one.
//   - A client sends the name of the document and its version, and never a document.
//
// This package is v0, as the packages sink and source are.
package searchable
