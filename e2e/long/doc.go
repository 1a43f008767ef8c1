// SPDX-License-Identifier: Apache-2.0

// Package long tests upgrades. It deploys an earlier build of lull, then the current build, and
// then the earlier build again. During all of this, documents change.
//
// `make e2e-long` runs the tests, on the emulator that can update a deployed stack. The tests need
// the build tag e2elong, and the earlier build that e2e/run.sh makes.
package long
