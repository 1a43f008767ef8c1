// Package layering is a test of the tree's shape. It fails if a folder imports another one that is
// not listed for it. It also fails if a package links a vendor's code that it must not.
//
// A folder here is a folder of the repository's top level, or one directly under internal/.
// folders_test.go lists them from the bottom to the top. A folder imports only folders that stand
// above it in that file, so no imports form a circle.
//
// The linter (depguard) says some of this about direct imports while you type. This test asks the
// go command what is really linked: a use case that reaches an AWS client through two other
// packages carries that client into four functions.
package layering
