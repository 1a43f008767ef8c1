// Dlq is the Lambda function behind a sink's dead-letter queue: see functions.DLQ.
package main

import (
	"github.com/lullhq/lull/functions"
)

func main() { functions.DLQ() }
