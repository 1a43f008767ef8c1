// Package story describes the decisions of a `lull dev` in words: line by line while it runs
// ([Narrator]), or all decisions about one document ([Recorder]).
//
// It promises one line, with the reason, for each decision that affects when a document is written.
package story
