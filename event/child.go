// SPDX-License-Identifier: Apache-2.0

package event

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// Child follows names from a value into objects and arrays: a name selects a member, and an index
// an element. If there is no such member or element, Child returns the zero Result, which is null.
// Unlike in gjson's paths, no character of a name has a special meaning. If an object has a name
// twice, the last member counts, as for most JSON readers.
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

// Members returns the members of an object that have these names, for callers that need several
// members. If a name occurs twice, the last member counts. Members does not return all members,
// because an object of a megabyte may have a hundred thousand.
func Members(object gjson.Result, names ...string) map[string]gjson.Result {
	some := make(map[string]gjson.Result, len(names))
	addMembers(some, object, names)
	return some
}

// addMembers adds the members of an object that have these names to the map some.
func addMembers(some map[string]gjson.Result, object gjson.Result, names []string) {
	for name, value := range object.ForEach {
		if slices.Contains(names, name.Str) {
			some[name.Str] = value
		}
	}
}

// Text returns a text unchanged, and a number with all its digits. It returns "" for any other
// value.
func Text(v gjson.Result) string {
	if v.Type == gjson.Number {
		return v.Raw
	}
	return v.Str
}

// TypeName names the type of a value, for error messages.
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
