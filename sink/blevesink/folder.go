// SPDX-License-Identifier: Apache-2.0

package blevesink

import "github.com/lullhq/lull/internal/seam/datafolder"

// folderMarker marks the folders that this version understands.
var folderMarker = datafolder.Marker{Holds: "lull search index", Schema: 1}

type (
	// ForeignFolderError says that a folder contains other files than lull's. No file in the folder
	// was changed.
	ForeignFolderError = datafolder.ForeignError
	// InUseError says that the folder is already open: in another process, or by another Index in
	// this process.
	InUseError = datafolder.InUseError
)
