// Package config is lull.yaml as one typed struct: the settings that the embedded engine, the
// functions and the infrastructure share.
//
// It promises three things.
//
//   - Default returns settings that keep every promise of the design; Validate finds no fault in
//     them.
//   - Validate returns every configuration error at once. Each has the dotted name of the setting
//     as lull.yaml spells it, its value, what is wrong and how to fix it. Nothing is ever clamped,
//     rounded or silently replaced: a setting is used as written or refused.
//   - A Config without faults that was read, defaulted or completed survives MarshalJSON and
//     UnmarshalJSON unchanged. The infrastructure writes config.json beside each function's binary,
//     and the function reads it back.
//
// The package knows JSON and no YAML, so that a function which reads config.json does not carry a
// YAML parser: the loader of lull.yaml is the package yamlfile below this one. Both use the same
// decoder, so an unknown key, a duration or a size is judged alike.
//
// The numbers are connected: the lease must outlive a killed invocation, the visibility must
// outlive a flight, a row must outlive every message that could resurrect its document. Each
// connection is one rule in rules.go with the sentence that it enforces.
package config
