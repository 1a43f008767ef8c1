// SPDX-License-Identifier: Apache-2.0

// Package operate contains every question and order that an operator can give to a running stack,
// such as publish, explain and rescue. It works for every stack: deployed, in memory, or `lull
// dev`. [API] lists the operations. [Operator] builds them from the parts of a stack: each service,
// such as publisher or explainer, gets only the parts that it uses. [Handler] and [Client] carry
// the operations over HTTP to a `lull dev` in another process.
//
// An operation that only reads changes nothing. An operation that changes something says so in its
// answer and leaves an audit note. ErrInput means that the order was wrong and that nothing was
// changed; its text names the field and the fix.
package operate
