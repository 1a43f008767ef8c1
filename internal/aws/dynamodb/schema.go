// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/shard"
)

// The names of the table's keys, attributes and index. Package infra and the tests create the table
// with these names.
const (
	PartitionKey = "doc" // string: the id of a document, or "!..." for an item of lull itself
	// the index of dead letters and scheduled events, in the order of their time
	IndexName      = "waiting"
	IndexPartition = "bucket"                    // string
	IndexSort      = "at"                        // string: microseconds with leading zeros, then the id
	TTLAttribute   = string(shard.AttrExpiresAt) // number, seconds
)

// Definition returns the request that creates the table, for tests and emulators. The table is like
// the table of package infra: paid by request, and the index contains all attributes.
func Definition(name string) *sdk.CreateTableInput {
	text := func(attr string) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(attr), AttributeType: types.ScalarAttributeTypeS}
	}
	key := func(attr string, kind types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: aws.String(attr), KeyType: kind}
	}
	return &sdk.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{text(PartitionKey), text(IndexPartition), text(IndexSort)},
		KeySchema:            []types.KeySchemaElement{key(PartitionKey, types.KeyTypeHash)},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(IndexName),
			KeySchema: []types.KeySchemaElement{
				key(IndexPartition, types.KeyTypeHash),
				key(IndexSort, types.KeyTypeRange),
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
	}
}
