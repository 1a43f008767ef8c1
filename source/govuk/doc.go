// SPDX-License-Identifier: Apache-2.0

// Package govuk is the format of GOV.UK's publishing messages. Importing it registers the kind
// govuk.
//
// A message is a put, a delete or a skip. The package uses the same rules, in the same order, as
// the consumers of the publishing system itself (docs/events.md). Events have no time, because a
// message only names the time of publication, and editors may change that time.
package govuk
