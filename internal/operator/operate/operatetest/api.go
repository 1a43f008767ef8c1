// SPDX-License-Identifier: Apache-2.0

// Package operatetest builds stacks for tests, whose operations are the methods of a test's type.
package operatetest

import (
	"reflect"

	"github.com/lullhq/lull/internal/operator/operate"
)

// API returns base with each operation replaced for which stack has a method of the same name. It
// panics if such a method has another signature than the operation.
func API(base operate.API, stack any) operate.API {
	v := reflect.ValueOf(&base).Elem()
	for i := range v.NumField() {
		if m := reflect.ValueOf(stack).MethodByName(v.Type().Field(i).Name); m.IsValid() {
			v.Field(i).Set(m.Convert(v.Field(i).Type()))
		}
	}
	return base
}

// Late returns operations that ask stack for its operations at each call, so that a test may change
// the stack in between.
func Late(stack func() operate.API) (api operate.API) {
	v := reflect.ValueOf(&api).Elem()
	for i := range v.NumField() {
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func(args []reflect.Value) []reflect.Value {
			return reflect.ValueOf(stack()).Field(i).Call(args)
		}))
	}
	return api
}
