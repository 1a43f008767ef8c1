// SPDX-License-Identifier: Apache-2.0

// Package browser tests the console in a real browser: Chromium, driven over its DevTools protocol,
// and checked with the rules of axe-core. The tests have the build tag browser. `make test-console`
// runs them, and `make screenshots` makes the pictures of the documents.
//
// The stack is the built program: `lull dev` on a free port. A test waits until the page shows
// something, with a deadline. No test waits for a fixed time.
package browser
