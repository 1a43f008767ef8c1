// Package iam proves the roles of a deployed stack on an emulator that enforces them. The flow
// passes with the roles as they are synthesised. For each function, one action after the other is
// taken away: the function says what it cannot do, loses nothing, and does it when the action is
// given back.
//
// `make e2e-iam` runs it. The tests need the build tag e2eiam and run one after the other.
package iam
