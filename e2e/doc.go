// Package e2e proves the deployed stack end to end: what CDK synthesises, deployed with the plain
// CDK command line to an emulator of AWS, with the functions' own binaries and a real OpenSearch.
// docs/e2e.md says what is proved and what an emulator cannot prove.
//
// `make e2e` runs it. The tests need the build tag e2e and run one after the other, because they
// stop servers and count what the functions did.
package e2e
