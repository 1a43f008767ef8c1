// SPDX-License-Identifier: Apache-2.0

// Package yamlfile reads lull.yaml into a config.Config.
//
// The package is separate from package config, so that the functions, which read config.json, do
// not contain a YAML parser. Only commands and the infrastructure import yamlfile.
//
// The YAML is plain: mappings, lists and scalars in one document. Anchors, aliases, merge keys and
// tags are refused. So a line of the file means what it says, and a small file cannot expand to a
// large one. config.Decode checks everything else: unknown keys, repeated keys, durations, sizes
// and bounds. It returns all faults at once, with their lines.
package yamlfile
