// Package console is the web page of a stack: what waits, documents, dead letters, and whatever
// else a stack can do. `lull dev` serves it at /, and `lull console --aws` for a deployed stack. It
// asks what the commands ask ([operate.API]); its pages are the plain files of the folder assets.
//
// A page of another site can neither read nor change anything. What a sender wrote is shown as
// text. Every answer is bounded, however many documents there are. SECURITY.md says what the
// console protects against.
package console
