// Package cloudwatch reads a stack's metrics back, for `lull console --aws`.
//
// It asks for many metrics at once, never more often than its caller does: AWS bills each metric of
// a request.
package cloudwatch
