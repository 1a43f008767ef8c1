// SPDX-License-Identifier: Apache-2.0

// Package webhook is the sink for a receiver that you write yourself. The package sends each write
// as a signed HTTP request to one address.
//
// # What it promises
//
// Requests follow the Standard Webhooks convention (standardwebhooks.com): a POST of JSON with the
// headers webhook-id, webhook-timestamp and webhook-signature. docs/sinks/webhook.md says what a
// receiver must do, and examples/webhook is an example of a receiver.
//
// A request contains up to Options.BulkDocuments documents, and one by default. Every document gets
// one outcome. The sink does not send a document again if the outcome is unknown. If the receiver
// refuses the contents of a request with several documents, the sink halves the request until the
// document to blame is alone. The number of halvings is bounded.
//
// With Options.Versions, the receiver compares fences, and answers 409 to a smaller fence. Without
// Versions, the last write wins.
//
// Requests do not follow redirects or use a proxy. The sink sends requests only to addresses of the
// public internet, unless the settings say that the receiver is in a private network. Errors and
// reasons contain neither secrets nor documents.
package webhook
