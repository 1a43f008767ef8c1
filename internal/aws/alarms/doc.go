// Package alarms says which alarms a stack has: over which metrics of CloudWatch, and when they go
// off. Package infra makes them, and internal/proof/stops checks that whatever stops a stack sets
// one of them off.
//
// Everything in it is plain data, safe for concurrent use.
package alarms
