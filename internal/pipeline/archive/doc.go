// Package archive keeps what receive was given, so that it can be sent again: the batches of a
// time, one object for each invocation, with every message as it was, broken ones too.
//
//	archive/2026/11/22/10/0415.123_live_search_250_01KAN...   received at 10:04:15.123 UTC, 250 messages
//
// An object is gzip of lines of JSON: a head, then one message a line. So a range of time is a
// range of names, and gunzip and Athena can read an object without lull.
//
// The archive is beside the way of a message, not on it. Nothing waits for it, and nothing is
// acknowledged because of it (ADR 0037). What a sender wrote is in it: whoever reads it bounds what
// they read.
package archive
