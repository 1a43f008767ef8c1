// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver" // the driver "sqlite3"
	_ "github.com/ncruces/go-sqlite3/embed"  // SQLite itself
)

// schema has two tables. The outbox holds the events that lull has not accepted yet. AUTOINCREMENT
// never uses a number twice, so the number of an event is a good version: it grows with each change
// of any article, also when an article is deleted and made again.
const schema = `
CREATE TABLE IF NOT EXISTS articles (id TEXT PRIMARY KEY, title TEXT NOT NULL, text TEXT NOT NULL, saved TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (version INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL);`

// article is what an editor writes.
type article struct {
	ID    string `json:"-"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Saved string `json:"saved"` // a time of RFC 3339, in UTC
}

// event is one change in lull's own format: docs/events.md.
type event struct {
	Type     string   `json:"type"` // doc.changed or doc.deleted
	Subject  string   `json:"subject"`
	Sequence int64    `json:"sequence,string"`
	Data     *article `json:"data,omitempty"`
}

// store keeps the articles and the outbox in one database. Its methods may be called concurrently.
type store struct{ db *sql.DB }

func openStore(ctx context.Context, file string) (*store, error) {
	db, err := sql.Open("sqlite3", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &store{db}, nil
}

func (s *store) close() error { return s.db.Close() }

// save stores an article and its event in one transaction. So either both are in the database or
// neither is, and no crash loses an event of an article that was saved.
func (s *store) save(ctx context.Context, a article) error {
	a.Saved = time.Now().UTC().Format(time.RFC3339)
	return s.change(ctx, event{Type: "doc.changed", Subject: a.ID, Data: &a},
		`INSERT INTO articles (id, title, text, saved) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, text = excluded.text, saved = excluded.saved`,
		a.ID, a.Title, a.Text, a.Saved)
}

// remove deletes an article. The delete is an event with a version, too.
func (s *store) remove(ctx context.Context, id string) error {
	return s.change(ctx, event{Type: "doc.deleted", Subject: id}, `DELETE FROM articles WHERE id = ?`, id)
}

func (s *store) change(ctx context.Context, e event, statement string, args ...any) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	// The article first: in a database with several writers, its lock then puts the versions of one
	// article in the order of the commits.
	if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
		return err
	}
	added, err := tx.ExecContext(ctx, `INSERT INTO outbox (event) VALUES ('')`)
	if err != nil {
		return err
	}
	if e.Sequence, err = added.LastInsertId(); err != nil {
		return err
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE outbox SET event = ? WHERE version = ?`, string(b), e.Sequence); err != nil {
		return err
	}
	return tx.Commit()
}

// articles returns the articles, the last saved first.
func (s *store) articles(ctx context.Context) ([]article, error) {
	return collect(ctx, s.db, `SELECT id, title, text, saved FROM articles ORDER BY saved DESC, id LIMIT 100`,
		func(rows *sql.Rows, a *article) error { return rows.Scan(&a.ID, &a.Title, &a.Text, &a.Saved) })
}

// article returns one article, or false if it does not exist.
func (s *store) article(ctx context.Context, id string) (article, bool, error) {
	a := article{ID: id}
	row := s.db.QueryRowContext(ctx, `SELECT title, text, saved FROM articles WHERE id = ?`, id)
	err := row.Scan(&a.Title, &a.Text, &a.Saved)
	if errors.Is(err, sql.ErrNoRows) {
		return article{}, false, nil
	}
	return a, err == nil, err
}

// pending is an event that lull has not accepted yet.
type pending struct {
	version int64
	event   string
}

// outbox returns the oldest events that wait, in the order of their versions.
func (s *store) outbox(ctx context.Context, limit int) ([]pending, error) {
	return collect(ctx, s.db, fmt.Sprintf(`SELECT version, event FROM outbox ORDER BY version LIMIT %d`, limit),
		func(rows *sql.Rows, p *pending) error { return rows.Scan(&p.version, &p.event) })
}

// accepted removes an event that lull has accepted.
func (s *store) accepted(ctx context.Context, version int64) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM outbox WHERE version = ?`, version)
	return err
}

func collect[T any](ctx context.Context, db *sql.DB, query string, scan func(*sql.Rows, *T) error) ([]T, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		if err := scan(rows, &one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
