// Package govuk is the format of GOV.UK's publishing messages. Importing it registers the kind
// govuk.
//
// A message is a put, a delete or a skip; the rules and their order are those of the publishing
// system's own consumers (docs/events.md). Events have no time: a message names the time of
// publication only, which editors may set.
package govuk
