// SPDX-License-Identifier: Apache-2.0

// Package outbound sends requests to hosts that senders or settings name, and restricts these
// requests. They use no proxy and follow no redirects, and go only to addresses that the caller
// allows. The package checks an address when it connects, after the name was resolved. So a name
// cannot lead to another address later.
package outbound
