// Package index carries out design section 8: one turn of a flight. It reads the rows of what the
// flight holds and claims the newest version of every document that is due. It writes them to the
// sink in bulk, commits, and deletes the messages that are done.
//
// What it promises: no write without a lease; no message deleted that is not done; nothing older
// written after a version that may be in the sink; at most one request under one claim, unless the
// first was definitely refused. A turn may be killed at any point and two turns of one flight may
// overlap: the rows decide. No state survives between calls of Turn, and Turn is safe for
// concurrent use.
package index
