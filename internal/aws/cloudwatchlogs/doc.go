// Package cloudwatchlogs reads the log lines of the deployed functions about a document. These
// lines are the only history of decisions that a deployed stack keeps.
//
// It returns only the lines of one document, oldest first. The time, the number of requests and the
// number of lines are bounded; if there are too many lines, it returns the newest. At the level
// INFO, functions log only failures and audited decisions. At DEBUG they log every decision.
package cloudwatchlogs
