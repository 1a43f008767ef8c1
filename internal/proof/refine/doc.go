// SPDX-License-Identifier: Apache-2.0

// Package refine compares the code with the model. The real use cases process one document in a
// simulated run of package sim. Each of their steps must be a step of package model.
//
// A simulated run calls a [Checker] for each step (sim.Step). The Checker maps the run to a state
// of the model: the row, the sink, and the claim or messages that act. The step must then be an
// edge of the model's Next, from the state before the step to the state after the step. The edge
// must break no promise. The code may write under another condition than the model, with another
// effect or in another order. The Checker then reports the write, even if no damage follows.
//
// # The abstraction
//
// Order keys become ranks among the versions that the upstream sends. Times become ranks among the
// times of a step. Other values have no state in the model, or are mapped as follows.
//
//   - The state of a step contains the execution that acts, the message that it acts on, the holder
//     of the lease and the holder's requests. No edge of the model depends on other processes.
//   - A claim is one execution of the model, from CLAIM to the write that ends the claim. If a
//     claim crashes or ends without an answer, its execution stays in the same state. In the model
//     it is slow, and may never continue.
//   - A lease whose time is over ends at the first write that needs its end.
//   - An invocation and its flight remember the versions that they have seen committed, by a
//     consistent read or by the row in an answer. The model looks and deletes in one step, the code
//     in two.
//   - last_write is the time of the last committed claim. The machine Pace checks the time of the
//     commit, which is later.
//
// [Mapping] lists which real step is which action of the model. The Checker also reports real steps
// that have no action in the model.
package refine
