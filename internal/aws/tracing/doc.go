// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans to an OpenTelemetry collector, with the outcomes of messages that
// have a W3C trace context. The package reads the same notes as the metrics and the decision log,
// and sends OTLP over HTTP.
//
//   - If the sender of a message traces the message, each of its events gets a span in the sender's
//     trace: "lull committed", "lull superseded" and so on. The span begins when the message was
//     sent.
//   - Each invocation of receive and index has a span in a trace of the flight. The id of this
//     trace is the id of the flight, so the state machine needs no trace context. Spans of events
//     and of invocations link to each other.
//   - If the sender does not sample a message, the message gets no span. Without an endpoint, the
//     package does nothing.
//   - Spans contain ids, versions and steps, and never a document or the text of an error.
//   - If the collector does not answer, one invocation per minute takes half a second longer. No
//     invocation fails because of that.
//
// The package encodes spans itself, because the exporter of the SDK would add 7 MB to each function
// (docs/adr/0029).
package tracing
