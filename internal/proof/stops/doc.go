// SPDX-License-Identifier: Apache-2.0

// Package stops proves that an alarm goes off whenever something stops a stack.
//
// The tests stop a simulated stack in every known way. The tests remove each permission from each
// role, make each service and each function fail for good, and disable all parts that can be
// disabled. An evaluator of CloudWatch's alarms gets the metrics of the real code, and the metrics
// that AWS documents for its services. The alarms are the ones that package infra creates.
// docs/runbook/stops.md and testdata/permissions.md show which alarm goes off first, and when.
package stops
