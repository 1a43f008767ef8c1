// SPDX-License-Identifier: Apache-2.0

// Package usecasetest has what the tests of all use cases share: a rig with rows and queues in
// memory, a journal that keeps its notes, and calls that fail.
package usecasetest
