// SPDX-License-Identifier: Apache-2.0

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
// The package reads JSON but not YAML, so that a function which reads config.json does not contain
// a YAML parser. The package yamlfile below this one loads lull.yaml. Both formats go through the
// same decoder, so they have the same rules for an unknown key, a duration or a size.
//
// The numbers depend on each other: the lease must outlive a killed invocation, the visibility must
// outlive a flight, and a row must outlive every message that could resurrect its document. Each
// dependency is one Rule, in the files rules_*.go, with the sentence that it enforces.
package config
