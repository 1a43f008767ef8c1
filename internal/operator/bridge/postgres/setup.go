// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Setup is what the bridge needs in the database.
type Setup struct {
	Slot, Publication, Role string
	Tables                  []string // such as public.pages
}

// SQL returns the statements that create it, for psql. They contain no password.
func (s Setup) SQL() string {
	var out strings.Builder
	var tables, schemas []string
	for _, name := range s.Tables {
		schema, bare, ok := strings.Cut(name, ".")
		if !ok {
			schema, bare = "public", name
		}
		tables = append(tables, pgx.Identifier{schema, bare}.Sanitize())
		if of := (pgx.Identifier{schema}).Sanitize(); !strings.Contains(strings.Join(schemas, ", "), of) {
			schemas = append(schemas, of)
		}
	}
	role, list := pgx.Identifier{s.Role}.Sanitize(), strings.Join(tables, ", ")
	add := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	add("-- Run this with psql, as the owner of the tables, in their database. wal_level must be logical.")
	add("-- A role that may read these tables and replicate, and nothing else. On Amazon RDS, leave out")
	add("-- REPLICATION, and GRANT rds_replication TO %s.", role)
	add("CREATE ROLE %s LOGIN REPLICATION;", role)
	add("\\password %s", role)
	add("GRANT USAGE ON SCHEMA %s TO %s;", strings.Join(schemas, ", "), role)
	add("GRANT SELECT ON %s TO %s;", list, role)
	add("-- What is published. A column list or a WHERE here leaves out columns or rows.")
	add("CREATE PUBLICATION %s FOR TABLE %s", pgx.Identifier{s.Publication}.Sanitize(), list)
	add("  WITH (publish = 'insert, update, delete, truncate', publish_via_partition_root = true);")
	add("-- The slot, after the publication. From now on PostgreSQL keeps its log for the bridge: limit it with")
	add("-- max_slot_wal_keep_size, and drop the slot when you no longer run the bridge.")
	add("SELECT pg_create_logical_replication_slot('%s', 'pgoutput');", s.Slot)
	add("-- Optional, for tables whose rows have large values: PostgreSQL then logs whole rows, and the bridge")
	add("-- need not read them again.")
	for _, t := range tables {
		add("-- ALTER TABLE %s REPLICA IDENTITY FULL;", t)
	}
	return out.String()
}
