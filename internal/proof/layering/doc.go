// SPDX-License-Identifier: Apache-2.0

// Package layering tests which packages import which. The test fails if a folder imports a folder
// that is not listed for it. The test also fails if a package links forbidden code of a vendor.
//
// A folder means a folder at the top level of the repository, or one directly under internal/.
// folders_test.go lists the folders, the lowest layer first. A folder imports only folders listed
// before it, so that no imports form a circle.
//
// The linter depguard checks some direct imports while you type. This test asks the go command what
// each package really links. For example, a use case that reaches an AWS client through two other
// packages brings that client into four functions.
package layering
