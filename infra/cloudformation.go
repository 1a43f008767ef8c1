// SPDX-License-Identifier: Apache-2.0

package infra

func isEmpty(list string) any {
	return equals(map[string]any{"Fn::Join": []any{"", ref(list)}}, "")
}

func isSet(name string) any { return not(equals(ref(name), "")) }

func ref(name string) any { return map[string]any{"Ref": name} }
func equals(a, b any) any { return map[string]any{"Fn::Equals": []any{a, b}} }
func not(a any) any       { return map[string]any{"Fn::Not": []any{a}} }
func both(a, b any) any   { return map[string]any{"Fn::And": []any{a, b}} }
func oneOf(name, a, b string) any {
	return not(both(not(equals(ref(name), a)), not(equals(ref(name), b))))
}
func either(c string, a, b any) any { return map[string]any{"Fn::If": []any{c, a, b}} }

var absent = ref("AWS::NoValue")

func sub(text string) any { return map[string]any{"Fn::Sub": text} }
