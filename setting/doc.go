// Package setting describes the settings of lull.yaml: the unit of a value, its bounds, its default
// in words and its effect.
//
// It describes the settings of lull itself and the options of each kind of sink and source. A
// [Kind] has a struct of options and a description of each option. From these, lull decodes the
// settings file strictly, checks the bounds, and writes the documentation. So no other code needs
// to know the kind.
//
// This package is v0, like sink and source: names may change until lull has a v1.
package setting
