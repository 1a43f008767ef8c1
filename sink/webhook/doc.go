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
// a document whose outcome is unknown is not sent again. If the contents of a request with several
// documents are refused, the request is halved until the document to blame is alone. The number of
// halvings is bounded.
//
// With Options.Versions the receiver compares fences, and answers 409 to an older one. Without
// Versions the last write wins.
//
// Requests do not follow redirects or use a proxy. They are sent only to addresses of the public
// internet, unless the settings say that the receiver is in a private network. Errors and reasons
// contain neither secrets nor documents.
package webhook
