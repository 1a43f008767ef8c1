// Package lambdatest tests what is the same of every function: that it is wired from its names and
// credentials and nothing else. It also shows what the function does in an account where something
// that a name stands for is missing.
package lambdatest
