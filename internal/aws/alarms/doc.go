// SPDX-License-Identifier: Apache-2.0

// Package alarms lists the alarms of a stack, with the CloudWatch metrics and the threshold of each
// alarm. Package infra creates the alarms. internal/proof/stops checks that every cause that stops
// a stack fires at least one alarm.
//
// All values are plain data, and are safe for concurrent use.
package alarms
