// SPDX-License-Identifier: Apache-2.0

// Package api contains only a test. The test compares the exported names of the public packages
// with the lists in testdata. No change of a public name then goes unnoticed (docs/versions.md).
package api
