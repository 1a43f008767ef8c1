// Package metrics is the journal of a deployed function: counters for CloudWatch and lines for its
// log.
//
// What it promises:
//
//   - Every note counts in the metric that is called as its step: "lease_lost" is LeaseLost, in the
//     namespace lull with the dimensions
//     Stack and Sink. A committed version also gives its freshness, the time since it was sent, with the dimension Lane.
//   - Metrics leave as one line of CloudWatch's embedded metric format per flush and lane, written
//     to the function's
//     output: no request, no permission, no time. Flush is called once at the end of every invocation.
//   - What an operator must see is a log line, one JSON object, at level WARN or ERROR; what only
//     explains is at DEBUG, and costs nothing unless
//     the function's log level asks for it. A step gets a few lines per invocation, and how many were left out is said;
//     steps that an audit asks for get all of theirs.
//   - Neither ever holds a document's content: notes have none.
package metrics
