// SPDX-License-Identifier: Apache-2.0

// Package outages measures how late documents are written after an outage. It runs `lull dev` with
// real search engines, and kills the engines.
package outages
