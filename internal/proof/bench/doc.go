// Package bench runs lull and its peers over one trace and counts what each of them needs:
// requests, dollars, freshness and processor time. `make bench` writes docs/numbers.md from it, so
// that nobody types a figure there. The page is the template beside the code.
//
// Every contender gets the same messages at the same times, the same simulated latencies and the
// same prices. lull is the real code of internal/pipeline/receive, internal/pipeline/index and
// internal/pipeline/prune. The peers are small honest programs, written here from what their
// documentation says they do.
//
// Time is virtual (testing/synctest), so requests, writes and freshness hold for any machine. The
// scheduler decides which of two things happens first within one instant, so the last digit may
// differ from run to run. Processor time is this machine's, and is only given as a ratio of two
// contenders measured in turns in the same run. What measures it is benchmarks, so it is in the
// files of the tests.
//
// The package is a harness for tests: it takes a testing.TB and ends the test where something fails
// that no run may meet.
package bench
