// SPDX-License-Identifier: Apache-2.0

// Package console is the web page of a stack: it shows waiting messages, documents and dead
// letters. `lull dev` serves the console at /, and `lull console --aws` serves it for a deployed
// stack. The console uses the same interface as the commands ([operate.API]). The page consists of
// the plain files in the folder assets.
//
// A page of another site can neither read nor change anything in the console. A sender's text is
// shown as text and is never run. Every answer has a bounded size, for any number of documents.
// SECURITY.md says against which attacks the console protects.
package console
