// SPDX-License-Identifier: Apache-2.0

package debezium

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

// binlog returns the position of a change in the binlog as one number. One field is not enough: the
// position starts again with every file, the GTID starts again with every server, and source.ts_ms
// counts whole seconds.
func binlog(_ string, from gjson.Result) (v source.Version, bad *event.Invalid) {
	m := event.Members(from, "file", "pos", "row")
	name := m["file"].Str
	number := name[strings.LastIndexByte(name, '.')+1:]
	pos, row := m["pos"].Raw, cmp.Or(m["row"].Raw, "0")
	switch {
	case !digits(number, 10):
		return v, source.VersionInvalid("source/file",
			"source/file %s is not the name of a binlog file: send a name such as mysql-bin.000003", event.Quote(name))
	case !digits(pos, posDigits):
		return v, source.VersionInvalid("source/pos", "source/pos is %s: send the position in the binlog",
			source.TypeName(m["pos"]))
	case !digits(row, rowDigits):
		return v, source.VersionInvalid("source/row", "source/row is %s: send the number of the row",
			source.TypeName(m["row"]))
	}
	return joinNumbers("source/pos", number, pad(pos, posDigits), pad(row, rowDigits)), nil
}

// joinNumbers makes a version of several numbers. All numbers but the first must have a fixed
// number of digits.
func joinNumbers(field string, numbers ...string) source.Version {
	text := trimZeros(strings.Join(numbers, ""))
	return source.Version{Field: field, Value: gjson.Result{Type: gjson.Number, Raw: text}}
}

// pad adds leading zeros until a number has this many digits.
func pad(number string, digits int) string {
	return strings.Repeat("0", max(0, digits-len(number))) + number
}

// sequence returns the position of a change in PostgreSQL's log as one number: the position of the
// last commit before the change, and then the position of the change. The position of the change
// alone does not order the rows of a snapshot. A transaction that was open during the snapshot has
// the lower position, but its change is newer. Debezium sends changes in the order of their
// commits. So a row of a snapshot sorts before every change that is sent after the same commit. See
// source.sequence in Debezium's documentation of its PostgreSQL connector, and in the code of
// 3.2.0.Final.
func sequence(op string, from gjson.Result) (v source.Version, bad *event.Invalid) {
	field := event.Child(from, "sequence")
	pair := gjson.Parse(field.Str).Array()
	if field.Type != gjson.String || len(pair) != 2 || !digits(pair[1].Str, placeDigits) ||
		pair[0].Type != gjson.Null && !digits(pair[0].Str, placeDigits) {
		return v, source.VersionInvalid("source/sequence",
			`source/sequence is not a sequence of PostgreSQL: send a text such as ["24023119","24023128"]`)
	}
	commit, place := cmp.Or(pair[0].Str, pair[1].Str), pair[1].Str // before the first commit, pair[0] is null
	if op == "r" {
		place = "0"
	}
	return joinNumbers("source/sequence", commit, pad(place, placeDigits)), nil
}

// placeDigits is the largest number of digits of a position in PostgreSQL's log, which has 64 bits.
const placeDigits = 20

// posDigits and rowDigits are the largest numbers of digits of a position in the binlog and of a
// row.
const posDigits, rowDigits = 12, 8

func digits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
