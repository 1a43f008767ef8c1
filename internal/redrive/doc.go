// Package redrive is what operators do with dead letters: list, show, send again, drop, and cancel
// what is still pending (design section 10). prune uses the same code for the bounded automatic
// redrives.
//
// What it promises:
//
//   - A dead letter is sent again only while nobody works on its version; otherwise it is reported
//     as busy and waits.
//   - Sending never deletes the dead letter. It goes once the row shows that its version or a newer
//     one is committed. It also goes when an operator drops it, which leaves an audit note.
//   - A message is sent once for all of its dead letters that are asked for and may be sent.
//   - A copy is never newer than its original, and every copy is judged by version: nothing goes
//     backwards.
//   - A dead letter older than rows are kept, with nothing committed to judge it by, is too old to
//     judge unless it is forced.
//   - A dry run changes nothing. Whatever fails concerns one dead letter and is reported with it.
package redrive
