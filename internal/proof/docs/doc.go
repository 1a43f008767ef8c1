// Package docs holds the documents to the program: every command, setting and message that a page
// shows is read here, and what can run on this machine is run.
//
// A fenced block says in its first line what it is: a language, and what follows it.
//
//	sh run            bash runs it, page by page, in a folder of its own; exit=3 for another code
//	sh dev            a `lull dev` that stays up until the next one, or until the page ends
//	sh <why not>      it is not run: see notRun; its commands and flags are checked all the same
//	text output       what the block before prints; ... stands for anything
//	yaml              a whole lull.yaml; it must be valid
//	yaml fragment     a part of one; it must be valid within a small one
//	yaml other        YAML of another program
//	json              JSON, or NDJSON
//	json event        messages that the settings above take; event=govuk without settings
//	json document     the document of the message above
//
// same=PATH says that a block has the text of a file of the repository, and as=PATH that the reader
// saves it under this name. `...` alone on a line of an output stands for any lines. In what runs,
// 127.0.0.1:7070 is an address of the test's own.
//
// Commands in `code` of a paragraph are checked like those of a block.
package docs
