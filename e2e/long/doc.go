// Package long deploys an earlier build of lull, then today's over it, then the earlier one
// again, all of it under load.
//
// `make e2e-long` runs it, on the emulator that updates a deployed stack. The tests need the build
// tag e2elong, and the earlier build that e2e/run.sh makes.
package long
