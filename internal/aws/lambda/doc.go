// SPDX-License-Identifier: Apache-2.0

// Package lambda is the code that all functions share between Lambda's runtime and the use cases.
// The package converts the bytes of an invocation into values, and the results into bytes.
//
// What it promises:
//
//   - An SQS event is parsed without reflection, in one pass. If a record cannot be read, only that
//     record is reported as failed.
//   - The answer to an event source mapping always contains the list batchItemFailures, which is
//     never null and names only messages of the event. With any other answer, the mapping would
//     keep or delete the whole batch.
//   - The use cases isolate panics of decoders, projections and sinks. After any other panic, the
//     batch is halved until the messages that cause the panic are alone, and only these messages
//     fail. A panic in index fails the turn, and the state machine retries the turn after the
//     lease.
//   - The context ends before Lambda kills the invocation. If Lambda would let an invocation run
//     longer than the settings say, index refuses the invocation, because leases are computed from
//     the settings.
//   - A function with invalid settings reports every message as failed, counts ConfigurationErrors,
//     and logs in each invocation what is wrong. No message is lost.
package lambda
