// SPDX-License-Identifier: Apache-2.0

// Package setting describes the settings of lull.yaml: the unit of a value, its bounds, its default
// in words and its effect.
//
// The package describes the settings of lull itself, and the options of each kind of sink and
// source. A [Kind] has a struct of options and a description of each option. lull uses the
// descriptions to decode the settings file strictly, to check bounds, and to write the
// documentation. So no other code needs to know the kind.
//
// This package is v0, like sink and source: names may change until lull has a v1.
package setting
