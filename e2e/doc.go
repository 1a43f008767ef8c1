// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the deployed stack end to end. The CDK command line deploys the synthesised
// stack to an emulator of AWS, with the real binaries of the functions and a real OpenSearch.
// docs/e2e.md says what the tests prove and what an emulator cannot prove.
//
// `make e2e` runs the tests. They need the build tag e2e. They run one after the other, because
// they stop servers and count metrics of the functions.
package e2e
