// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// perStatement is how many events a statement has.
const perStatement = 1000

var columns = []string{"id", "fence", "version", "order_key", "indexed_at", "document"}

// connected runs workers, each with its own connection.
func connected(ctx context.Context, url string, workers int, work func(context.Context, *pgx.Conn) error) error {
	return together(ctx, workers, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		return errors.Join(work(ctx, conn), conn.Close(context.WithoutCancel(ctx)))
	})
}

// insert writes with COPY: one stream for each worker.
func insert(ctx context.Context, url string, workers int, events <-chan event) error {
	return connected(ctx, url, workers, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.CopyFrom(ctx, pgx.Identifier{target}, columns, pgx.CopyFromFunc(func() ([]any, error) {
			e, more := <-events
			if !more {
				return nil, nil
			}
			return []any{e.Subject, e.version, e.Sequence, e.Sequence, time.Now(), e.Data}, nil
		}))
		return err
	})
}

// statement is the one that lull's sink uses.
const statement = `INSERT INTO "` + target + `" AS held (id, fence, version, order_key, indexed_at, document)
SELECT id, fence, version, version, now(), document
FROM unnest($1::text[], $2::bigint[], $3::text[], $4::json[]) AS op (id, fence, version, document)
ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, version = excluded.version, order_key = excluded.order_key,
  indexed_at = excluded.indexed_at, document = excluded.document
WHERE held.fence <= excluded.fence`

// upsert writes the newest version of each document in a batch, if the table has no newer one.
func upsert(ctx context.Context, url string, workers int, events <-chan event) error {
	return connected(ctx, url, workers, func(ctx context.Context, conn *pgx.Conn) error {
		for more := true; more; {
			var batch []event
			for len(batch) < perStatement {
				var e event
				if e, more = <-events; !more {
					break
				}
				batch = append(batch, e)
			}
			if len(batch) == 0 {
				return nil
			}
			if err := put(ctx, conn, newest(batch)); err != nil {
				return err
			}
		}
		return nil
	})
}

// newest returns the newest event of each document, sorted by id. All workers lock rows in the same
// order, so they cannot cause a deadlock.
func newest(batch []event) []event {
	slices.SortStableFunc(batch, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(b.version, a.version))
	})
	return slices.CompactFunc(batch, func(a, b event) bool { return a.Subject == b.Subject })
}

func put(ctx context.Context, conn *pgx.Conn, batch []event) error {
	ids, fences := make([]string, len(batch)), make([]int64, len(batch))
	versions, documents := make([]string, len(batch)), make([]string, len(batch))
	for i, e := range batch {
		ids[i], fences[i], versions[i], documents[i] = e.Subject, e.version, e.Sequence, string(e.Data)
	}
	_, err := conn.Exec(ctx, statement, ids, fences, versions, documents)
	return err
}
