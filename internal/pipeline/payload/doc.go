// SPDX-License-Identifier: Apache-2.0

// Package payload loads the data that an event refers to (dataref). The reference was already
// checked against the settings' lists when its message was decoded. This package checks it again.
//
// It promises:
//
//   - It uses https only, to a host that the settings list, without redirects, cookies or proxies.
//     The address must be in the public internet, never loopback, private or link-local. It is
//     checked when it is connected to, after the name was resolved.
//   - It reads at most a limit, and checks the announced size before it reads.
//   - An *event.Invalid is a permanent error: missing, refused, too large. Any other error may be
//     temporary. No error quotes the loaded data.
package payload
