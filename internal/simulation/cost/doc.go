// SPDX-License-Identifier: Apache-2.0

// Package cost estimates the whole monthly bill of a stack for its settings and any load: requests
// and time, logs, metrics, alarms, polls, storage, keys and secrets.
//
// The package has no table of measured figures, which could become outdated. Package sim runs the
// functions with the settings in virtual time, and counts their requests to AWS. The functions
// write the same log lines and metrics as deployed functions. The same settings and load give the
// same estimate. The prices come from package price.
//
// AWS decides how many pollers receive from a queue, and how many messages each request of a poller
// returns. The estimate therefore has a floor and a ceiling.
package cost
