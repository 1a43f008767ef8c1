// Package lambdatest tests what is the same of every function: that it is wired from its names and
// credentials and nothing else, and what it does in an account where something that a name stands
// for is not there.
package lambdatest
