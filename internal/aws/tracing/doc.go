// Package tracing tells an OpenTelemetry collector what became of messages that carry a W3C trace
// context. It reads the notes that metrics and the decision log read, and sends OTLP over HTTP.
//
//   - A message that its sender traces gets a span in the sender's trace for each of its events:
//     "lull committed", "lull superseded" and so on. It begins when the message was sent.
//   - The invocations of receive and index have spans in a trace of their flight, whose id is the
//     flight's. Spans of events and of invocations link each other. So the state machine carries
//     nothing about tracing.
//   - What the sender does not sample leaves nothing. Without an endpoint the package does nothing.
//   - Spans hold ids, versions and steps: never a document or an error's text.
//   - A collector that does not answer costs one invocation in a minute half a second, and no
//     invocation its success.
//
// The encoding is ours because the SDK's exporter adds 7 MB to each function (docs/adr/0029).
package tracing
