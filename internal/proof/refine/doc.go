// Package refine holds the code against the model: what the real use cases do to one document, in a
// world of package sim, must be steps of package model.
//
// A [Checker] is called for each step of a world (sim.Step). It maps the world to a state of the
// model: the row, the sink, and the claim or messages that act. The step must then be an edge of
// the model's Next, from the state before the step to the state after it. The edge must break no
// promise. The code may write under another condition than the model, with another effect or in
// another order. The Checker reports that write, also if no damage follows.
//
// # The abstraction
//
// Order keys become ranks among the versions that the upstream sends. Times become ranks among the
// times of a step. Everything else has no state in the model, or is mapped as follows.
//
//   - The state of a step has only the execution that acts, the message that it acts on, the
//     holder of the lease and its requests. No edge of the model depends on the others.
//   - A claim is one execution of the model, from CLAIM to the write that ends it. A claim that
//     crashes, or ends without an answer, stays in its state. In the model it is slow, and may
//     never continue.
//   - A lease ends at the first write that needs its end, once its time is over.
//   - An invocation and its flight remember the versions that they have seen committed, by a
//     consistent read or by a row's answer. The model looks and deletes in one step, the code in
//     two.
//   - last_write is the time of the last committed claim. The time of its commit, which is later,
//     is what the machine Pace is about.
//
// [Mapping] lists which real step is which action of the model. A step without an action is found
// as well.
package refine
