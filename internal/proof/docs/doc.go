// SPDX-License-Identifier: Apache-2.0

// Package docs checks the pages of the documentation against the program. The tests read every
// command, setting and message that a page shows, and run all blocks that can run on this machine.
//
// The first line of a fenced block says what the block is: a language, and a class.
//
//	sh run            bash runs the blocks of a page in one folder; exit=3 wants the exit code 3
//	sh dev            a `lull dev` that stays up until the next one, or until the page ends
//	sh <why not>      bash does not run it (see notRun), but its commands and flags are checked
//	text output       what the block before prints; ... stands for anything
//	yaml              a whole lull.yaml; it must be valid
//	yaml fragment     a part of a lull.yaml; it must be valid within a small lull.yaml
//	yaml other        YAML of another program
//	json              JSON, or NDJSON
//	json event        messages that the settings above take; event=govuk without settings
//	json document     the document of the message above
//
// same=PATH says that a block has the same text as a file of the repository. as=PATH says that the
// reader saves the block under this name. In an output, `...` alone on a line stands for any lines.
// When a block runs, the test replaces 127.0.0.1:7070 by an address of its own.
//
// Commands in `code` of a paragraph are checked like commands in a block.
package docs
