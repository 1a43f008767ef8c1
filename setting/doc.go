// Package setting describes the settings of lull.yaml: what a value counts or is, its bounds, its
// default in words and what it does.
//
// The settings of lull itself are described by it, and so are the options of every kind of sink and
// source. A [Kind] has a struct of options and a description of each. From these the settings file
// is decoded strictly, held to its bounds and documented; nothing else needs to know the kind.
//
// This package is v0, as sink and source are: names may change until lull has a v1.
package setting
