// SPDX-License-Identifier: Apache-2.0

// Package lambdatest has helpers for tests and benchmarks of functions: environment variables, a
// fake AWS account in which resources may be missing, and SQS events.
package lambdatest
