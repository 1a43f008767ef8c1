// Package local links the kinds of sinks that live in one process: for `lull dev`, and for whoever
// must tell them from those that can be deployed. Import it for that alone.
package local

import (
	_ "github.com/lullhq/lull/internal/local/memory" // kind memory
	_ "github.com/lullhq/lull/sink/blevesink"        // kind bleve
)
