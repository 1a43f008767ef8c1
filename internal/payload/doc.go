// Package payload loads what an event refers to instead of carrying it (dataref). A reference was
// checked against the settings' lists when its message was decoded; this package is the second lock
// on that door.
//
// What it promises:
//
//   - https only, from a host that the settings list, without redirects, cookies or proxies. An
//     address must be the public internet's: never loopback, private or link-local: the address is
//     judged after its name was resolved, at the moment of connecting.
//   - No more than a limit is read, and the size that the server announces is judged before
//     reading.
//   - An error that is an *event.Invalid is for good: missing, refused, too large. Anything else
//     may pass. Neither quotes what was loaded.
package payload
