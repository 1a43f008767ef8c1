// Package metrics counts the decisions of a deployed function for CloudWatch.
//
// What it promises:
//
//   - Every note counts in the metric that is named after its step: "lease_lost" is LeaseLost, in
//     the namespace lull with the dimensions Stack and Sink. A committed version also gives its
//     freshness, the time since it was sent, with the dimension Lane.
//   - Metrics leave as one line of CloudWatch's embedded metric format per flush, sink and lane,
//     written to the function's output. This needs no request, no permission and no time. Flush is
//     called once at the end of every invocation.
package metrics
