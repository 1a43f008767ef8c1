// SPDX-License-Identifier: Apache-2.0

// Package rebuild replaces the index of a collection during live traffic (design section 15, ADR
// 0035). It fills a new index, compares it with the index in use, and then switches readers to it.
//
// A row of the table stores the progress, so a program that resumes a killed rebuild continues
// where that rebuild stopped. Every step may be repeated. Only one program at a time drives a
// rebuild, because it needs the lease of that row.
//
// Before the switch, the program writes a seal to the health row of the sink (SEAL). While the seal
// is there, no turn may note that the new index missed a write.
package rebuild
