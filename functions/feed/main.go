// SPDX-License-Identifier: Apache-2.0

// Feed is the Lambda function inside the pipe of a commit feed: see functions.Feed.
package main

import "github.com/lullhq/lull/functions"

func main() { functions.Feed() }
