// Package cloudwatchlogs reads back what the deployed functions logged about a document: the
// history of decisions for which a deployed stack keeps no other place.
//
// It promises the lines of one document only, oldest first. The time, the number of requests and
// the number of lines are bounded; it keeps the newest lines. It cannot show what was not logged:
// at the level INFO, functions log only failures and audited decisions, at DEBUG every decision.
package cloudwatchlogs
