// Package cost estimates the whole monthly bill of a stack, for its own settings and any load:
// requests and time, logs, metrics, alarms, polls, storage, keys and secrets.
//
// It has no table of measured figures that could become outdated. Package sim runs the functions
// with the settings, in virtual time, and counts their requests to AWS. Log lines and metrics are
// the same as of the deployed functions. The same settings and load give the same estimate. The
// prices come from package price.
//
// AWS decides how many pollers receive from a queue, and how many messages each of their requests
// brings. So the estimate has a floor and a ceiling.
package cost
