// SPDX-License-Identifier: Apache-2.0

// Package sourcetest is the test suite that every kind of source must pass. [Run] reads messages
// and their expected results from a file. It checks that the kind keeps the promises of package
// source, with these messages and with thousands of broken variants of them:
//
//   - The kind never panics, even if the body is cut off, has values of other types, or nests
//     deeply.
//   - Each result is exactly one of an event, a skip and an Invalid. A put has a payload or a
//     reference, and a delete has neither.
//   - The same body gives the same result in any envelope, with any attributes and at any time.
//   - If an object has a key twice, the last one counts, or the event is invalid.
//   - Numbers keep all their digits.
//   - An Invalid names the field, or says that the whole message is wrong, and quotes at most 64
//     bytes.
//   - A document is a JSON object without the key _lull.
//
// Messages are decoded at the same time, so that the race detector finds a format that is not safe
// for concurrent use. [Fuzz] checks the same promises with bodies that the fuzzer chooses.
//
// Stability: this package is v0. A later release may test more.
package sourcetest
