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
		for member, value := range v.ForEach {
			if member.Str == name {
				found = value
			}
		}
	case v.IsArray():
		before, err := strconv.Atoi(name)
		if err != nil || strconv.Itoa(before) != name { // an index has neither a sign nor a leading zero
			return found
		}
		for _, value := range v.ForEach {
			if before == 0 {
				return value
			}
			before--
		}
	}
	return found
}

// Members are the members of an object with these names, for a format that looks at many of them.
// Of two members of one name the last one counts. The others are not kept: an object of a megabyte
// may have a hundred thousand.
func Members(object gjson.Result, names ...string) map[string]gjson.Result {
	some := make(map[string]gjson.Result, len(names))
	keep(some, object, names)
	return some
}

// keep adds the members of an object with these names to others.
func keep(some map[string]gjson.Result, object gjson.Result, names []string) {
	for name, value := range object.ForEach {
		if slices.Contains(names, name.Str) {
			some[name.Str] = value
		}
	}
}

// Text is a text as it is, or a number digit for digit; empty for any other value.
func Text(v gjson.Result) string {
	if v.Type == gjson.Number {
		return v.Raw
	}
	return v.Str
}

// TypeName names what a value is, for problems.
func TypeName(v gjson.Result) string {
	switch {
	case !v.Exists():
		return "missing"
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "an array"
	}
	return scalarNames[v.Type]
}

var scalarNames = map[gjson.Type]string{
	gjson.Null: "null", gjson.Number: "a number", gjson.String: "text", gjson.True: "a boolean", gjson.False: "a boolean",
}
