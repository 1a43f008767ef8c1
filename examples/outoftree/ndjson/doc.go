// Package ndjson is a kind of sink for lull: files of newline-delimited JSON in a bucket, for a
// data lake or another system that reads files.
//
// Each Write puts one file with a line for each document: its id, put or delete, and the document
// with lull's metadata. Names of files grow with time, and a reader takes the last line of a
// document. A bucket compares nothing: the sink is one without versions. A file is written whole or
// not at all, so all documents of a call have one outcome.
//
// In lull.yaml:
//
//	sinks:
//	  lake:
//	    kind: ndjson
//	    url: s3://my-bucket/documents
//	    suffix: .jsonl
package ndjson
