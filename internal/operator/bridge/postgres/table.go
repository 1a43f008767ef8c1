// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// table is a table with the columns that the publication has.
type table struct {
	oid        uint32
	schema     string
	bare       string // the name without the schema
	name       string // schema.bare
	collection string
	columns    []column
	key        []int           // the columns of the key, in the order of its index; empty if there is no key
	filter     string          // the publication's WHERE for this table, as PostgreSQL writes it, or ""
	parent     bool            // the rows are in partitions
	hidden     map[string]bool // the columns that the publication lacks
}

type column struct {
	name   string
	oid    uint32 // the type
	encode encoder
}

// from returns the table for a FROM clause. Without ONLY, a query also reads the tables that
// inherit from this one.
func (t *table) from() string {
	name := pgx.Identifier{t.schema, t.bare}.Sanitize()
	if t.parent {
		return name
	}
	return "only " + name
}

// find returns the index of a column, or -1.
func (t *table) find(name string) int {
	for i, c := range t.columns {
		if c.name == name {
			return i
		}
	}
	return -1
}

// keyOf returns the values and types of a row's key, as parameters of a query.
func (t *table) keyOf(r row) (values [][]byte, oids []uint32) {
	for _, i := range t.key {
		values, oids = append(values, r[i]), append(oids, t.columns[i].oid)
	}
	return values, oids
}

// catalog reads the database's catalog over a connection that runs ordinary queries.
type catalog struct {
	conn        *pgconn.PgConn
	publication string
	collections map[string]string // by the name of a table
	encoders    map[uint32]encoder
}

// query returns the rows of a query with parameters in the text format.
func query(ctx context.Context, conn *pgconn.PgConn, sql string, parameters ...string) ([][][]byte, error) {
	var values [][]byte
	for _, p := range parameters {
		values = append(values, []byte(p))
	}
	result := conn.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	return result.Rows, result.Err
}

// tables returns the publication's tables, or only the one with this OID if it is not 0.
func (c *catalog) tables(ctx context.Context, oid uint32) ([]*table, error) {
	rows, err := query(ctx, c.conn, `
select t.oid, p.schemaname, p.tablename, t.relkind = 'p', coalesce(p.rowfilter, ''), a.attname, a.atttypid,
  coalesce(array_position(i.indkey::int2[], a.attnum), -1), a.attname = any(p.attnames)
from pg_publication_tables p
join pg_namespace n on n.nspname = p.schemaname
join pg_class t on t.relname = p.tablename and t.relnamespace = n.oid
join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
left join pg_index i on i.indrelid = t.oid
  and case when t.relreplident = 'i' then i.indisreplident else i.indisprimary end
where p.pubname = $1 and ($2 = '0' or t.oid = $2::oid)
order by p.schemaname, p.tablename, a.attnum`, c.publication, strconv.FormatUint(uint64(oid), 10))
	if err != nil {
		return nil, fmt.Errorf("read the tables of publication %s: %w", c.publication, err)
	}
	var all []*table
	places := map[*table]map[int]int{}
	for _, r := range rows {
		of, err := strconv.ParseUint(string(r[0]), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read an OID: %w", err)
		}
		if len(all) == 0 || all[len(all)-1].oid != uint32(of) {
			t := c.table(uint32(of), string(r[1]), string(r[2]))
			t.parent, t.filter = string(r[3]) == "t", string(r[4])
			all, places[t] = append(all, t), map[int]int{}
		}
		t := all[len(all)-1]
		if string(r[8]) != "t" {
			t.hidden[string(r[5])] = true
			continue
		}
		kind, err := strconv.ParseUint(string(r[6]), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read an OID: %w", err)
		}
		encode, err := c.encoder(ctx, uint32(kind))
		if err != nil {
			return nil, err
		}
		if place, err := strconv.Atoi(string(r[7])); err == nil && place >= 0 {
			places[t][place] = len(t.columns)
		}
		t.columns = append(t.columns, column{string(r[5]), uint32(kind), encode})
	}
	for _, t := range all {
		for place := range len(places[t]) {
			if i, ok := places[t][place]; ok {
				t.key = append(t.key, i)
			}
		}
	}
	return all, nil
}

// table returns a table without columns.
func (c *catalog) table(oid uint32, schema, bare string) *table {
	name := schema + "." + bare
	return &table{
		oid: oid, schema: schema, bare: bare, name: name,
		collection: cmp.Or(c.collections[name], strings.ReplaceAll(bare, "_", "-")), hidden: map[string]bool{},
	}
}

// encoder returns the encoder of a type. A type of the database that is not built in may be a
// domain or an array of another type.
func (c *catalog) encoder(ctx context.Context, oid uint32) (encoder, error) {
	const firstOfDatabase = 16384
	if oid < firstOfDatabase {
		return encoderOf(oid), nil
	}
	if e := c.encoders[oid]; e != nil {
		return e, nil
	}
	rows, err := query(ctx, c.conn, `select typbasetype,
  case when typcategory = 'A' and typlen = -1 and typdelim = ',' then typelem else 0 end
from pg_type where oid = $1::oid`, strconv.FormatUint(uint64(oid), 10))
	if err != nil {
		return nil, fmt.Errorf("read a type: %w", err)
	}
	e := encoder(quoted) // also if the type was deleted since
	for _, r := range rows {
		base, _ := strconv.ParseUint(string(r[0]), 10, 32)    // an OID
		element, _ := strconv.ParseUint(string(r[1]), 10, 32) // an OID
		switch {
		case base != 0:
			e, err = c.encoder(ctx, uint32(base))
		case element != 0:
			if e, err = c.encoder(ctx, uint32(element)); err == nil {
				e = arrayOf(e)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	c.encoders[oid] = e
	return e, nil
}
