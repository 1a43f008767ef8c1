// Package story tells what a `lull dev` decides, in words: line by line while it runs
// ([Narrator]), or what it decided about one document ([Recorder]).
//
// It promises one line for each decision that matters to a document's freshness, with the reason.
package story
