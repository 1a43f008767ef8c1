// Package stops proves that whatever stops a stack sets an alarm off.
//
// Its tests stop a simulated stack in every way that there is: they take each permission from each
// role, make each service and each function fail for good, and disable what can be disabled. The
// real code's metrics, and those that AWS counts by its documentation, go into an evaluator of
// CloudWatch's alarms. The alarms are the very ones that package infra makes. docs/runbook/stops.md
// shows which one goes off first, and when.
package stops
