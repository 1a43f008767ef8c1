// Package lambda is what the functions share between Lambda's runtime and the use cases: raw bytes
// in, raw bytes out.
//
// What it promises:
//
//   - An SQS event is read without reflection, in one pass. A record that cannot be read is
//     reported as failed, alone.
//   - The answer to an event source mapping always holds the list batchItemFailures, never null,
//     and names only messages of the event: anything else would fail, or delete, the whole batch.
//   - The use cases isolate panics of decoders, projections and sinks. Any other fails the messages
//     that cause it, not the batch: the batch is halved until they are alone. One of index fails
//     the turn, which the state machine tries again after the lease.
//   - Nothing runs past its time. The context ends before the platform kills the invocation. An
//     invocation that may live longer than the settings say is refused, because leases are computed
//     from them.
//   - A function that starts with bad settings answers every message as failed, counts
//     ConfigurationErrors and says at each invocation what is wrong. Nothing is lost, and nothing
//     is silent.
package lambda
