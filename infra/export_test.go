// SPDX-License-Identifier: Apache-2.0

package infra

// WriteProgram writes a file that looks like an arm64 program.
var WriteProgram = writeProgram
