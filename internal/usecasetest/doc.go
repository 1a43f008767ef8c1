// Package usecasetest is what the tests of the use cases share: notes kept, calls that fail, rows
// and messages made.
package usecasetest
