// Package cloudwatchlogs reads back what the deployed functions logged about a document: the
// history of decisions for which a deployed stack keeps no other place.
//
// It promises the lines of one document and no other's, oldest first, within bounds: of the time
// asked for, of the requests made, and of the lines returned, the newest of which it keeps. What
// was not logged it cannot tell: at the level INFO functions log what went wrong or must be
// audited, at DEBUG every decision.
package cloudwatchlogs
