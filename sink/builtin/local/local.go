// SPDX-License-Identifier: Apache-2.0

// Package local links the kinds of sinks that work in one process only. `lull dev` needs these
// kinds, and so does a program that must distinguish them from kinds that can be deployed. Import
// this package only for this effect.
package local

import (
	_ "github.com/lullhq/lull/sink/blevesink"  // kind bleve
	_ "github.com/lullhq/lull/sink/memorysink" // kind memory
)
