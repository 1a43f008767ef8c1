// SPDX-License-Identifier: Apache-2.0

// Package cloudwatch reads the metrics of a stack, for `lull console --aws`.
//
// The package reads many metrics with one request. The package sends no request by itself, because
// AWS bills each metric of a request.
package cloudwatch
