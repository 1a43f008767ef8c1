// Package refine holds the code against the model: what the real use cases do to one document, in a
// world of package sim, must be steps of package model.
//
// A [Checker] hears each step of a world (sim.Step). It makes of the world what the model knows of
// it: the row, the sink, the claim or the messages that act. The step must then be an edge of the
// model's Next, from there to what the world has become, and the edge must break nothing. The code
// may make a write under another condition than the model, with another effect or in another order.
// That is found at that very write, whether damage follows or not.
//
// # The abstraction
//
// Order keys become ranks among the versions that the upstream sends. Times become ranks among the
// times of a step. The rest has no state in the model, or is taken apart, as follows.
//
//   - Only who acts is in the state of a step, with the message that it acts on, the holder of the
//     lease and its requests. The others could do nothing about that step in the model either: an
//     edge asks for no more than these.
//   - A claim is an execution of its own, from CLAIM to what ends it. One that crashes, or gives up
//     without an answer, stays where it is: in the model it is slow, and may as well never go on.
//   - A lease ends when a write needs that it has, and its time is over.
//   - What an invocation has seen done (by a consistent read, or a row's answer) stays known to it,
//     and to its flight. The model looks and deletes in one step, the code in two.
//   - last_write is the time of the last committed claim. The time of its commit, which is later,
//     is what the machine Pace is about.
//
// [Mapping] lists which real step is which action of the model. A step without an action is found
// as well.
package refine
