// Package yamlfile reads lull.yaml into a config.Config.
//
// It is apart from package config so that the functions, which read config.json, carry no YAML
// parser: only commands and the infrastructure import it.
//
// The YAML is plain: mappings, lists and scalars in one document. Anchors, aliases, merge keys and
// tags are refused. So a line of the file means what it says, and a small file cannot become a
// large one. Everything else is judged by config.Decode: unknown keys, repeated keys, durations,
// sizes and bounds, all faults at once with their lines.
package yamlfile
