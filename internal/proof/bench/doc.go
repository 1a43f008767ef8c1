// SPDX-License-Identifier: Apache-2.0

// Package bench runs lull and its peers over one trace and counts what each of them needs:
// requests, dollars, freshness and processor time. `make bench` writes docs/numbers.md from the
// results, so that no figure is typed by hand. numbers.md.tmpl is the template of the page.
//
// Every contender gets the same messages at the same times, the same simulated latencies and the
// same prices. lull is the real code of internal/pipeline/receive, internal/pipeline/index and
// internal/pipeline/prune. The peers are small programs, written for this package from the
// documentation of each product.
//
// Time is virtual (testing/synctest), so requests, writes and freshness are the same on any
// machine. The scheduler orders steps within one instant, so the last digit may differ between
// runs. Processor time depends on this machine. The page shows processor time only as a ratio of
// two contenders that take turns in the same run. Benchmarks measure it, so that code is in test
// files.
//
// The package is a harness for tests. A run takes a testing.TB, and ends the test if something
// fails that must not fail in any run.
package bench
