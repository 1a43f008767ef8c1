// SPDX-License-Identifier: Apache-2.0

// Package native is the format of docs/events.md: CloudEvents 1.0 structured JSON, or the same
// fields without specversion. Importing it registers the kind native.
package native
