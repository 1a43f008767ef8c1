// Package iam proves the roles of a deployed stack, on an emulator that enforces them: the flow
// passes with the roles as they are synthesised, and for each function taking one action away
// breaks it, loses nothing, and giving it back mends it.
//
// `make e2e-iam` runs it. The tests need the build tag e2eiam and run one after the other.
package iam
