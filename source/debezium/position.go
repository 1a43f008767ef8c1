package debezium

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source"
)

// binlog is the place of a change in the binlog as one number. The position alone starts again with
// every file, the GTID with every server, and source.ts_ms counts seconds.
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
	return joined("source/pos", number, padded(pos, posDigits), padded(row, rowDigits)), nil
}

// joined is a version of several numbers: all but the first have all their digits.
func joined(field string, numbers ...string) source.Version {
	text := plain(strings.Join(numbers, ""))
	return source.Version{Field: field, Value: gjson.Result{Type: gjson.Number, Raw: text}}
}

// padded is a number with so many digits at least.
func padded(number string, digits int) string {
	return strings.Repeat("0", max(0, digits-len(number))) + number
}

// sequence is the place of a change in PostgreSQL's log as one number: the last commit before it,
// then the place of the change. The place alone does not order the rows of a snapshot. A
// transaction that was open during the snapshot has the lower place, but its change is newer.
// Changes are sent in the order of commits. So a row of a snapshot sorts before every change that
// is sent after the same commit. Source: source.sequence in Debezium's documentation of its
// PostgreSQL connector, and 3.2.0.Final.
func sequence(op string, from gjson.Result) (v source.Version, bad *event.Invalid) {
	field := event.Child(from, "sequence")
	pair := gjson.Parse(field.Str).Array()
	if field.Type != gjson.String || len(pair) != 2 || !digits(pair[1].Str, placeDigits) ||
		pair[0].Type != gjson.Null && !digits(pair[0].Str, placeDigits) {
		return v, source.VersionInvalid("source/sequence",
			`source/sequence is not a sequence of PostgreSQL: send a text such as ["24023119","24023128"]`)
	}
	commit, place := cmp.Or(pair[0].Str, pair[1].Str), pair[1].Str // before the first commit, the pair names no commit
	if op == "r" {
		place = "0"
	}
	return joined("source/sequence", commit, padded(place, placeDigits)), nil
}

// placeDigits is how many digits a place in PostgreSQL's log has at most, as a number of 64 bits.
const placeDigits = 20

// How many digits a position and a row have at most.
const posDigits, rowDigits = 12, 8

func digits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
