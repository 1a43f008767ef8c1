// SPDX-License-Identifier: Apache-2.0

// Package infra deploys lull to AWS with the CDK. Its one construct, Lull, can be part of any
// stack.
//
// The package promises:
//
//   - Props.Validate reports all faults at once: settings that break a promise of the design, and
//     settings that AWS would refuse. With a fault, nothing is synthesised.
//   - The names of resources are known before the deploy. Each name begins with the setting
//     `stack`. Package names lists all names.
//   - The table, the bucket and the queues hold the state of documents, so they are retained when
//     the stack is deleted. With Props.Protect the table is also protected from deletion.
//   - Each function has its own role. The role allows exactly the actions that the code calls, on
//     exactly the resources that the code uses. A wildcard has one of two reasons: AWS defines no
//     resource for the action, or the end of a name is not known before it is used.
//   - The settings are in the file config.json next to each function's binary, and the environment
//     contains only names and ARNs. In the template of a release (Template), the settings are in
//     the environment.
//   - Each alarm reports something that must never happen, and has a page in docs/runbook.
//
// Each sink has a live and a bulk queue, a dead-letter queue, four functions with aliases, three
// event source mappings and two state machines. So an unreachable sink cannot fill the queue of
// another one. All sinks share the stack's table and bucket.
//
// Constructors panic if Props have faults. Call Props.Validate first to get the faults as an error.
package infra
