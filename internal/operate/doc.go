// Package operate is what an operator may ask of a running stack, whatever it runs on: publish,
// get, status, explain, dead letters, cancel, rescue. [Operator] answers from the seams, [Handler]
// and [Client] carry the same questions over HTTP to a `lull dev` in another process.
//
// What it promises: nothing is changed by a question that only looks; what changes something says
// so in its answer and leaves an audit note; an error names the field and the fix, and then nothing
// was changed.
package operate
