// SPDX-License-Identifier: Apache-2.0

package debezium

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

var example = source.Example{
	Options: Options{Pointers{Sequence: true}}, Class: source.ClassInt, // recommended for a new stack
	Change: source.Change{
		ID: "1001", Version: "2402311900000000000024023128", Op: event.Put, Time: time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC),
		Data: `{"id":1001,"title":"Renew a bus pass","price":12.5}`,
	},
	Write: write,
}

// write makes one object of key and value, for a table with the primary key id.
func write(s source.Settings, c source.Change) (string, error) {
	o, err := source.OptionsOf[Options](s)
	if err != nil {
		return "", err
	}
	o.Debezium.Key = cmp.Or(o.Debezium.Key, "/after/id")
	key, version, badPointer := o.Debezium.parse()
	data, err := c.Content()
	if err = cmp.Or(badPointer, err, c.Here(s)); err != nil {
		return "", err
	}
	id, at := source.Scalar(c.ID), ""
	if !c.Time.IsZero() {
		at = `,"ts_ms":` + strconv.FormatInt(c.Time.UnixMilli(), 10)
	}
	value := `{"before":null,"after":` + data + `,"source":{"version":"2.7.3.Final","connector":"postgresql",` +
		`"name":"cms"` + at + `,"db":"cms","schema":"public","table":"pages"},"op":"u"` + at + "}"
	if c.Op == event.Delete {
		value = `{"before":{},"after":null,` + value[len(`{"before":null,"after":{},`):]
		value = source.Pointer{Tokens: []string{"op"}}.Put(value, `"d"`)
		key = beforePointer(key)
	}
	value = key.Put(value, id)
	switch {
	case o.Debezium.Binlog:
		value, err = putBinlog(value, c.Version)
	case o.Debezium.Sequence:
		value, err = putSequence(value, c.Version)
	default:
		value = version.Put(value, source.Scalar(c.Version))
	}
	if err != nil {
		return "", err
	}
	return `{"key":{"id":` + id + `},"value":` + value + "}", nil
}

// putBinlog puts a version into a value, as the file, position and row of the binlog.
func putBinlog(value, version string) (string, error) {
	const places = posDigits + rowDigits
	if !digits(version, places+10) {
		return "", fmt.Errorf("version %s is not a position in the binlog", event.Quote(version))
	}
	version = pad(version, places+6)
	file, pos, row := version[:len(version)-places], version[len(version)-places:len(version)-rowDigits],
		version[len(version)-rowDigits:]
	for _, m := range [][2]string{
		{"connector", `"mysql"`}, {"file", source.Quoted("mysql-bin." + file)}, {"pos", trimZeros(pos)}, {"row", trimZeros(row)},
	} {
		value = source.Pointer{Tokens: []string{"source", m[0]}}.Put(value, m[1])
	}
	return value, nil
}

// putSequence puts a version into a value, as the two positions of source.sequence.
func putSequence(value, version string) (string, error) {
	if !digits(version, 2*placeDigits) {
		return "", fmt.Errorf("version %s is not a position in PostgreSQL's log", event.Quote(version))
	}
	version = pad(version, 2*placeDigits)
	commit, place := trimZeros(version[:placeDigits]), trimZeros(version[placeDigits:])
	pair := source.Quoted(`["` + commit + `","` + place + `"]`)
	return source.Pointer{Tokens: []string{"source", "sequence"}}.Put(value, pair), nil
}

// trimZeros removes leading zeros, because a number in JSON has none.
func trimZeros(digits string) string { return cmp.Or(strings.TrimLeft(digits, "0"), "0") }
