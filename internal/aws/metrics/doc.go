// SPDX-License-Identifier: Apache-2.0

// Package metrics counts the decisions of a deployed function for CloudWatch.
//
// What it promises:
//
//   - Every note is counted in the metric that is named after its step. For example, the step
//     "lease_lost" has the metric LeaseLost. The namespace is lull, and the dimensions are Stack
//     and Sink. A committed version also adds its freshness, which is the time since it was sent,
//     with the dimension Lane.
//   - Each Flush writes one line of CloudWatch's embedded metric format for each sink and lane to
//     the output of the function. This needs no request, no permission and no time. Flush is called
//     once at the end of every invocation.
package metrics
