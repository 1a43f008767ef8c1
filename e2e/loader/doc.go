// SPDX-License-Identifier: Apache-2.0

// Loader writes events to a search engine in bulk, with the engine's own client and without lull.
// `make bench-engines` compares it with `lull dev`.
//
//	loader -events FILE -url URL -form external|plain|upsert|copy [-workers 2]
//
// The file has the events that `lull dev --events` reads. The index or table is lull's own, and it
// must exist, so that the engine has the same work. The forms are the strongest ones that the
// client has:
//
//   - external: opensearch-go's bulk indexer. Each document has an external version, as lull's has,
//     so an older document never replaces a newer one.
//   - plain: the same without versions. The last request wins.
//   - upsert: pgx, a thousand documents in a statement. An older document never replaces a newer
//     one.
//   - copy: pgx, COPY. It only inserts.
//
// The loader ends when the engine has accepted every document. It fails if the engine refuses one.
package main
