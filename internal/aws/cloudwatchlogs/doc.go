// SPDX-License-Identifier: Apache-2.0

// Package cloudwatchlogs reads the log lines of the deployed functions about a document. These
// lines are the only history of decisions that a deployed stack keeps.
//
// The package returns only the lines of one document, oldest first. The time, the number of
// requests and the number of lines are bounded. If there are too many lines, the package returns
// the newest lines. At the level INFO, functions log only failures and audited decisions. At DEBUG,
// functions log every decision.
package cloudwatchlogs
