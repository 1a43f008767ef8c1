// Package govuk is the format of GOV.UK's publishing messages. Importing it registers the kind
// govuk.
//
// A message is a put, a delete or a skip. The rules and their order are those of the publishing
// system's own consumers (docs/events.md). Events have no time, because a message only names the
// time of publication, which editors may set.
package govuk
