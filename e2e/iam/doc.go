// SPDX-License-Identifier: Apache-2.0

// Package iam tests the roles of a deployed stack on an emulator that enforces IAM. With the
// synthesised roles, all of lull works. Then the tests remove each action of a function's role in
// turn. Without the action, the function must say what it cannot do, and must lose nothing. When
// the action is restored, the function must do the work. Another test runs the deployed programs
// under Amazon's own runtime.
//
// `make e2e-iam` runs the tests. They need the build tag e2eiam and run one after the other.
package iam
