// Package alarms lists the alarms of a stack: the CloudWatch metrics of each, and when it fires.
// Package infra creates them. internal/proof/stops checks that every cause that stops a stack fires
// at least one of them.
//
// Everything here is plain data, safe for concurrent use.
package alarms
