// Package archive stores the messages that receive got, so that they can be sent again. Each
// invocation writes one object with its batch, with every message unchanged, invalid ones too.
//
//	archive/2026/11/22/10/0415.123_live_search_250_01KAN...   received at 10:04:15.123 UTC, 250 messages
//
// An object is gzip of lines of JSON: a header, then one message per line. A range of time is a
// range of names, and gunzip and Athena can read an object without lull.
//
// No message waits for the archive, and none is acknowledged because of it (ADR 0037). The
// content comes from senders, so every reader must bound what it reads.
package archive
