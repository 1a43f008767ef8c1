// SPDX-License-Identifier: Apache-2.0

// Package ndjson is a kind of sink for lull: files of newline-delimited JSON in a bucket, for a
// data lake or another system that reads files.
//
// Each Write puts one file with a line for each document. A line has the id, the operation (put or
// delete), and the document with lull's metadata. The names of files sort by time, and a reader
// uses the last line of a document. A bucket does not compare versions, so this is a sink without
// versions. S3 writes a file completely or not at all, so all documents of a Write have the same
// outcome.
//
// In lull.yaml:
//
//	sinks:
//	  lake:
//	    kind: ndjson
//	    url: s3://my-bucket/documents
//	    suffix: .jsonl
package ndjson
