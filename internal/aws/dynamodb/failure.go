package dynamodb

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/shard"
)

// failure is the one place that says what an error of DynamoDB means, refused conditions apart.
func (t *Table) failure(doing string, err error) error {
	var (
		busy     *types.ProvisionedThroughputExceededException
		limit    *types.RequestLimitExceeded
		throttle *types.ThrottlingException
		missing  *types.ResourceNotFoundException
		code     = client.Code(err)
	)
	switch {
	case errors.As(err, &busy), errors.As(err, &limit), errors.As(err, &throttle), client.Throttled(code):
		return fmt.Errorf("%s: %w: %w", doing, shard.ErrThrottled, err)
	case errors.As(err, &missing):
		return backoff.Permanent(
			fmt.Errorf(
				"%s: table %s or its index %s does not exist in this account and region: deploy the stack, or "+
					"correct the table's name: %w",
				doing, t.name, IndexName, err))
	case client.Denied(code):
		return backoff.Permanent(
			fmt.Errorf("%s: table %s: the credentials may not do this: grant the role the action named here: %w", doing,
				t.name, err))
	case code == "Validation":
		return backoff.Permanent(
			fmt.Errorf(
				"%s: table %s does not take the request: compare its key (%s) and index (%s) with what the stack "+
					"deploys: %w",
				doing, t.name, PartitionKey, IndexName, err))
	}
	return fmt.Errorf("%s: table %s: %w", doing, t.name, err)
}
