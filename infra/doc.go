// Package infra provisions lull with the AWS CDK: one construct, Lull, that any stack may hold.
//
// What it promises:
//
//   - Settings that cannot keep the design's promises, or that AWS would refuse, are named all at
//     once and nothing is synthesised.
//   - Names are known before anything is deployed: each begins with the setting `stack`, and Names
//     lists them.
//   - What holds documents' state outlives the stack: the table, the bucket and the queues are
//     retained when the stack is deleted, and protected where Props.Protect says so.
//   - Each function has a role of its own with exactly the actions that its code calls, on exactly
//     the resources that it calls them on. A wildcard stands only where AWS knows no resource, or
//     where the rest of a name is not known before it is used.
//   - The settings travel as config.json beside each function's binary (with Template, which makes
//     a release's template, in the environment); otherwise the environment holds names
//     and ARNs only.
//   - Every alarm is something that must never happen, and has a page in docs/runbook.
//
// Per sink there are a live and a bulk queue, a dead-letter queue, four functions with aliases,
// three event source mappings and a state machine; a dead sink cannot fill another's queue. The
// table and the bucket are the stack's.
//
// Constructors panic where Props have faults; call Props.Validate first to get them as an error.
package infra
