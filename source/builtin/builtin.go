// SPDX-License-Identifier: Apache-2.0

// Package builtin imports the package of every kind of source that belongs to lull. A program that
// imports builtin can decode the messages of all these kinds.
package builtin

import (
	_ "github.com/lullhq/lull/source/debezium"       // the kind debezium
	_ "github.com/lullhq/lull/source/dynamodbstream" // the kind dynamodb-stream
	_ "github.com/lullhq/lull/source/govuk"          // the kind govuk
	_ "github.com/lullhq/lull/source/json"           // the kind json
	_ "github.com/lullhq/lull/source/native"         // the kind native
	_ "github.com/lullhq/lull/source/s3"             // the kind s3
)
