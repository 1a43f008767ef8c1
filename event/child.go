package event

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// Child follows names from a value into objects and arrays: a member by its name, an element by its
// index. What does not exist is the zero Result, which is null. A name has no special characters,
// unlike in gjson's paths. Of two members of one name the last one counts, as for most readers of
// JSON.
func Child(v gjson.Result, names ...string) gjson.Result {
	for _, name := range names {
		v = child(v, name)
	}
	return v
}

func child(v gjson.Result, name string) (found gjson.Result) {
	switch {
	case v.IsObject():
		v.ForEach(func(member, value gjson.Result) bool {
			if member.Str == name {
				found = value
			}
			return true
		})
	case v.IsArray():
		// An index has neither a sign nor a leading zero.
		want, err := strconv.Atoi(name)
		if err != nil || want < 0 || strconv.Itoa(want) != name {
			return found
		}
		n := 0
		v.ForEach(func(_, value gjson.Result) bool {
			if n == want {
				found = value
			}
			n++
			return n <= want
		})
	}
	return found
}

// Members are the members of an object with these names, for a format that looks at many of them.
// Of two members of one name the last one counts. The others are not kept: an object of a megabyte
// may have a hundred thousand.
func Members(object gjson.Result, names ...string) map[string]gjson.Result {
	some := make(map[string]gjson.Result, len(names))
	object.ForEach(func(name, value gjson.Result) bool {
		if slices.Contains(names, name.Str) {
			some[name.Str] = value
		}
		return true
	})
	return some
}
