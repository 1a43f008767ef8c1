// Package lambda is the code between Lambda's runtime and the use cases that all functions share:
// raw bytes in, raw bytes out.
//
// What it promises:
//
//   - An SQS event is read without reflection, in one pass. Only a record that cannot be read is
//     reported as failed.
//   - The answer to an event source mapping always holds the list batchItemFailures, never null,
//     and names only messages of the event. Any other answer would fail, or delete, the whole
//     batch.
//   - The use cases isolate panics of decoders, projections and sinks. Any other panic fails only
//     the messages that cause it: the batch is halved until they are alone. A panic in index fails
//     the turn, and the state machine retries it after the lease.
//   - The context ends before the platform kills the invocation. If the platform would let an
//     invocation run longer than the settings say, index refuses it, because leases are computed
//     from the settings.
//   - A function that starts with bad settings reports every message as failed, counts
//     ConfigurationErrors, and logs at each invocation what is wrong. No message is lost.
package lambda
