// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"fmt"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/shard"
)

// failure explains an error of DynamoDB. All methods use failure, except for refused conditions.
func (t *Table) failure(doing string, err error) error {
	if client.Throttled(client.Code(err)) {
		return fmt.Errorf("%s: %w: %w", doing, shard.ErrThrottled, err)
	}
	return client.Explain(doing+": table "+t.name, err,
		client.Final{
			Says: " or its index " + IndexName + " does not exist in this account and region: deploy the stack, or " +
				"correct the table's name",
			Codes: []string{"ResourceNotFound"},
		},
		client.Final{
			Says: " does not accept the request: compare its key (" + PartitionKey + ") and index (" + IndexName +
				") with what the stack deploys",
			Codes: []string{"Validation"},
		},
		client.Final{Says: ": the credentials do not permit this: grant the role the action named here"})
}
