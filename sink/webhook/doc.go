// Package webhook is the sink for a receiver of one's own: each write is a signed HTTP request to
// one address.
//
// # What it promises
//
// Requests follow the Standard Webhooks convention (standardwebhooks.com): a POST of JSON with the
// headers webhook-id, webhook-timestamp and webhook-signature. docs/sinks/webhook.md is the
// contract of a receiver, and examples/webhook is one.
//
// A request has one document, or up to Options.BulkDocuments. Every document gets one outcome, and
// nothing is sent again whose fate is unknown. Where a request with several documents is refused
// for what is in it, it is cut in halves until the document to blame is alone. The number of cuts
// is bounded.
//
// With Options.Versions the receiver compares fences, and answers 409 to an older one. Without them
// it applies whatever comes last.
//
// Requests follow no redirect and use no proxy. They go to addresses of the public internet, unless
// the settings say that the receiver is in a private network. Neither errors nor reasons hold a
// secret or a document.
package webhook
