// SPDX-License-Identifier: Apache-2.0

// Package archive stores the messages that receive received, so that they can be sent again. Each
// invocation writes one object with its batch. The object has every message unchanged, and invalid
// messages too.
//
//	archive/2026/11/22/10/0415.123_live_search_250_01KAN...   received at 10:04:15.123 UTC, 250 messages
//
// An object is a gzip of lines of JSON: a header, then one line for each message. Names sort by
// time, so a range of time is a range of names. gunzip and Athena can read an object without lull.
//
// No message waits for the archive, and lull acknowledges no message because of the archive (ADR
// 0037). The content comes from senders, so every reader must bound how much it reads.
package archive
