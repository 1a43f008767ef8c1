package dev

import _ "embed"

//go:embed page.html
var page string

// Demo is the demo stream of `lull dev`: a burst, a late old version, a delete and an older put
// after it, and poison.
//
//go:embed demo.ndjson
var Demo []byte
