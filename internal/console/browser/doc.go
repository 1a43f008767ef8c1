// Package browser holds the tests of the console that need a browser: real Chromium, driven over
// its DevTools protocol, with the rules of axe-core. They are behind the build tag browser, and
// `make test-console` runs them. `make screenshots` draws the pictures of the documents.
//
// The stack is the built program itself, `lull dev` with a port of its own. A test waits for what a
// page shows and has a deadline; nothing waits for a length of time.
package browser
