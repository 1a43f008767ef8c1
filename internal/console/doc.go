// Package console is the web page of a stack: it shows waiting messages, documents and dead
// letters. `lull dev` serves it at /, and `lull console --aws` for a deployed stack. It uses the
// same interface as the commands ([operate.API]). Its pages are the plain files of the folder
// assets.
//
// A page of another site can neither read nor change anything. A sender's text is shown as text and
// is never run. Every answer has a bounded size, for any number of documents. SECURITY.md says what
// the console protects against.
package console
