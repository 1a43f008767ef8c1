// Package local links the kinds of sinks that live in one process: for `lull dev`, and for whoever
// must tell them from those that can be deployed. Import it for that alone.
package local

import (
	_ "github.com/lullhq/lull/sink/blevesink"  // kind bleve
	_ "github.com/lullhq/lull/sink/memorysink" // kind memory
)
