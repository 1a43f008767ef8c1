// SPDX-License-Identifier: Apache-2.0

// Package postgres sends the rows of PostgreSQL's tables to package bridge: each change of a row,
// by logical replication ([Stream]), and the rows that existed before ([Copy]). Each row becomes an
// event in lull's own format (docs/events.md), with the row as its document.
//
// # Promises
//
//   - The slot is confirmed only to the end of a transaction whose rows, and all rows before,
//     lull's queue has accepted. So nothing is lost if the bridge, the database or the queue is
//     killed.
//   - Versions order all events of a row as the database's commits do, so lull refuses whatever
//     arrives late. A document never goes back to an older state of its row.
//   - No document lacks a column of its row.
//   - Memory is bounded in rows and in bytes, however large a transaction is. While lull's queue
//     does not accept messages, the bridge stops to read, and still answers PostgreSQL in time.
//   - It creates nothing in the database, except a temporary slot for a copy. It never logs a
//     password or a value of a row, except a key.
//   - A slot that PostgreSQL has dropped or invalidated ends the bridge, and the error says what to
//     do. The bridge never creates the slot, because the changes in between would be lost silently.
//
// # Versions
//
// A version has two numbers: a position in PostgreSQL's log (LSN), and a place after it, of 20
// digits. lull compares both as one number of at most 40 digits (the class int).
//
//	change of a row             LSN of the transaction's commit, LSN of the change
//	the row after a transaction LSN of the transaction's commit, the same again
//	the row at a position       LSN of the position, 0
//
// PostgreSQL sends transactions in the order of their commits, and the changes of a transaction in
// the order of their LSNs. Each LSN of a change is lower than that of its commit. Two changes of
// one row never have the same LSN: only COPY and INSERT write several rows in one record of the
// log, and these rows have different keys. A transaction that is sent again has the same LSNs, so
// lull recognises it, whatever was confirmed.
//
// An update that changes the key is two events with the same version, for two documents: a delete
// of the old one and a put of the new one.
//
// # The copy
//
// A temporary slot exports a snapshot. It contains exactly the transactions whose commits are
// before the slot's consistent point. So each row of the snapshot is "the row at a position". Every
// change that the snapshot lacks has a commit at or after this position, and therefore a greater
// version. Every change that it contains has a smaller version. It does not matter in which order
// the copy and the changes arrive. A row that was deleted after the snapshot gets a delete with a
// greater version. A row that was deleted before is not in the snapshot.
//
// The snapshot ends with its connection. A copy that is continued takes another snapshot, with a
// later consistent point, for the pages that are left. Both points are exact, so the argument holds
// for each page by itself. Only the stream's slot must be older than every snapshot: [Copy] checks
// that it exists first.
//
// # Values that PostgreSQL does not send
//
// If an update does not change a large value (TOAST), PostgreSQL sends the value only with REPLICA
// IDENTITY FULL. Otherwise the bridge reads the row by its key. What it reads may be older or newer
// than the change:
//
//  1. If the transaction is not visible to the query's snapshot yet, the row may be older. A commit
//     is in the log before other sessions see it. The bridge reads again until it is visible.
//  2. If the row is gone, a later change deleted it or changed its key. The stream contains this
//     change, so the bridge sends nothing for the earlier one.
//  3. If the row's xmin is the transaction, no later transaction has changed the row. What was read
//     is "the row after a transaction", and its version is greater than all changes of that
//     transaction.
//  4. Otherwise the row was changed later, or by a subtransaction. The bridge reads the position w
//     of the log, and then the row again. The row has not changed if two things hold: both rows
//     have the same ctid, xmin and xmax, and the transaction of xmax had ended before the second
//     query. Then every change of the row with a commit before w is in it, and none after. So it is
//     "the row at a position", w. The changes up to w arrive later, and lull refuses them.
//  5. If a transaction keeps the row busy, the bridge tries again for at most 10 seconds. Then it
//     sends what it has read with the version of the change. The row is at least as new as the
//     change, so nothing is lost. Only here a reader may see a newer state first, then the states
//     in between.
//
// # TRUNCATE
//
// PostgreSQL sends a TRUNCATE without the rows that it removed. The bridge sends an event that lull
// refuses, so that it becomes a dead letter: see docs/postgres.md for what to do.
package postgres
