// Receive is lull's receive function. It links no kind of sink.
package main

import "github.com/lullhq/lull/functions"

func main() { functions.Receive() }
