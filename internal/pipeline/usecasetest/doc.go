// Package usecasetest is what the tests of the use cases share: the rig that their benches stand
// on, notes kept, calls that fail.
package usecasetest
