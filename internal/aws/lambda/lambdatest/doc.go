// Package lambdatest helps tests and benchmarks of functions. It has an environment, an account in
// which resources may be missing, and SQS events.
package lambdatest
