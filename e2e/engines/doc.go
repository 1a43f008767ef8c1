// SPDX-License-Identifier: Apache-2.0

// Package engines runs `lull dev` with real search engines. It measures how many documents a second
// lull settles, and how late documents are after an outage, for which it kills the engines.
package engines
