// SPDX-License-Identifier: Apache-2.0

// Package enrich asks a service of the operator for additional fields of documents, such as a
// vector or a language. It does so before a document is written, once for each burst.
// docs/enrich.md is the contract.
//
// It promises one outcome for each document, matched by id and never by position. Every answer of a
// service has a defined outcome, even if it is too long, incomplete or not JSON. [MaxRequest],
// [MaxAnswer] and [MaxFields] bound the memory. A [Caller] transports requests and answers; each
// kind of service has a package for its own.
package enrich
