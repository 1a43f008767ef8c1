// Package operate contains every question and order that an operator can give to a running stack,
// such as publish, explain and rescue. It works for every stack: deployed, in memory, or `lull
// dev`. [Operator] answers from the seams. [Handler] and [Client] send the same questions over HTTP
// to a `lull dev` in another process.
//
// A method that only looks changes nothing. A method that changes something says so in its answer
// and leaves an audit note. ErrInput means that the order was wrong and that nothing was changed;
// its text names the field and the fix.
package operate
