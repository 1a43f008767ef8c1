package blevesink

import "github.com/lullhq/lull/internal/seam/datafolder"

// ours is the marker of folders that this version understands.
var ours = datafolder.Marker{Holds: "lull search index", Schema: 1}

type (
	// ForeignFolderError says that a folder holds something else than lull's data. Nothing in it
	// was touched.
	ForeignFolderError = datafolder.ForeignError
	// InUseError says that another process, or another Index of this one, has the folder open.
	InUseError = datafolder.InUseError
)
