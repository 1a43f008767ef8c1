// Package api holds no code, only a test: it compares the exported names of the public packages
// with the lists in testdata, so that no change of them goes unseen (docs/versions.md).
package api
