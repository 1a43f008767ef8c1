// Index is the Lambda function behind a sink's state machine: see functions.Index.
package main

import (
	"github.com/lullhq/lull/functions"
	_ "github.com/lullhq/lull/source/builtin"

	_ "github.com/lullhq/lull/sink/builtin"
)

func main() { functions.Index() }
