// SPDX-License-Identifier: Apache-2.0

// Package story describes the decisions of `lull dev` in words. [Narrator] writes a line for each
// decision while `lull dev` runs. [Recorder] returns all decisions about one document.
//
// Each decision that affects when a document is written has one line, with the reason.
package story
