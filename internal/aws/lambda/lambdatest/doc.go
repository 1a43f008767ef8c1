// Package lambdatest is what tests and benchmarks of functions stand on: an environment, an account
// behind it in which something may be missing, and events of SQS.
package lambdatest
