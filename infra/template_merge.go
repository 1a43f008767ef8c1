// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

func copyOf(v map[string]any) (out map[string]any, err error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// merge adds the differences between base and variant to a template, under a condition. At depth 1
// are resources and outputs, which can have a condition themselves.
func merge(into, base, variant map[string]any, condition string, depth int) error {
	for name, v := range variant {
		b, known := base[name]
		switch {
		case !known && depth == 1:
			resource, ok := v.(map[string]any)
			if !ok {
				return fmt.Errorf("%s is not a resource", name)
			}
			resource["Condition"] = condition
			into[name] = resource
		case !known && depth == 0:
			into[name] = v
		case !known:
			into[name] = either(condition, v, absent)
		case reflect.DeepEqual(b, v):
		case name == "DependsOn":
			return fmt.Errorf("%v depends on %v instead: a template cannot say that under a condition", b, v)
		default:
			merged, err := mergeValue(into[name], b, v, condition, depth+1)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			into[name] = merged
		}
	}
	for name := range base {
		if _, stays := variant[name]; !stays {
			if depth < 2 {
				return fmt.Errorf("%s is missing with %s", name, condition)
			}
			into[name] = either(condition, absent, into[name])
		}
	}
	return nil
}

func mergeValue(into, base, variant any, condition string, depth int) (any, error) {
	switch b := base.(type) {
	case map[string]any:
		v, ok := variant.(map[string]any)
		i, open := into.(map[string]any)
		if ok && open && !intrinsic(b) && !intrinsic(v) && !intrinsic(i) {
			return i, merge(i, b, v, condition, depth)
		}
	case []any:
		v, ok := variant.([]any)
		i, open := into.([]any)
		if ok && open && len(b) == len(v) && len(i) == len(b) {
			for n := range b {
				if reflect.DeepEqual(b[n], v[n]) {
					continue
				}
				merged, err := mergeValue(i[n], b[n], v[n], condition, depth)
				if err != nil {
					return nil, err
				}
				i[n] = merged
			}
			return i, nil
		}
		if ok && open {
			return mergeList(i, b, v, condition)
		}
	}
	return either(condition, variant, into), nil
}

// mergeList adds the items that a variant's list has in addition to base's. It fails if one of
// base's items is missing.
func mergeList(into, base, variant []any, condition string) ([]any, error) {
	has := func(list []any, item any) bool {
		return slices.ContainsFunc(list, func(e any) bool { return reflect.DeepEqual(e, item) })
	}
	for _, item := range base {
		if !has(variant, item) {
			return nil, fmt.Errorf("%v is missing with %s", item, condition)
		}
	}
	for _, item := range variant {
		if !has(base, item) {
			into = append(into, either(condition, item, absent))
		}
	}
	return into, nil
}

// intrinsic reports whether a value is a CloudFormation function.
func intrinsic(v map[string]any) bool {
	for name := range v {
		return len(v) == 1 && (name == "Ref" || strings.HasPrefix(name, "Fn::"))
	}
	return false
}
