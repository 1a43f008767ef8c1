// Package tracing sends an OpenTelemetry collector the outcome of messages that carry a W3C trace
// context. It reads the same notes as metrics and the decision log, and sends OTLP over HTTP.
//
//   - A message that its sender traces gets a span in the sender's trace for each of its events:
//     "lull committed", "lull superseded" and so on. It begins when the message was sent.
//   - The invocations of receive and index have spans in a trace of the flight; its id is the
//     flight's id. Spans of events and of invocations link each other. So the state machine needs
//     no trace context.
//   - A message that its sender does not sample gets no span. Without an endpoint the package does
//     nothing.
//   - Spans hold ids, versions and steps: never a document or an error's text.
//   - If the collector does not answer, one invocation per minute takes half a second longer. No
//     invocation fails for it.
//
// The encoding is ours because the SDK's exporter adds 7 MB to each function (docs/adr/0029).
package tracing
