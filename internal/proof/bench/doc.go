// Package bench runs lull and its peers over one trace and counts what each of them needs:
// requests, dollars, freshness and processor time. `make bench` writes docs/numbers.md from it, so
// that no figure there is typed by a person.
//
// What it promises: every contender gets the same messages at the same times, the same simulated
// latencies and the same prices. lull is the real code of internal/receive, internal/index and
// internal/prune; the peers are small honest programs, written here from what their documentation
// says they do. Time is virtual (testing/synctest), so requests, writes and freshness hold for any
// machine; which of two things happens first within one instant is left to the scheduler, so that
// the last digit may differ from run to run. Processor time is this machine's, and is only ever
// given as a ratio of two contenders measured in turns in the same run.
package bench
