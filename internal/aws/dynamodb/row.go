// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
)

// attrs lists all attributes of a row.
var attrs = shard.Attrs()

// encode returns a value in the form in which DynamoDB stores it. Order keys are binary, and sets
// of order keys are binary sets. Names are strings; times and counts are numbers.
func encode(v shard.Value) types.AttributeValue {
	switch v.Kind {
	case shard.KindBinary:
		return &types.AttributeValueMemberB{Value: []byte(v.Text)}
	case shard.KindKeySet:
		var set [][]byte
		for _, k := range shard.KeySet(v.Text).Keys() {
			set = append(set, []byte(k))
		}
		return &types.AttributeValueMemberBS{Value: set}
	case shard.KindNumber:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v.Num, 10)}
	default:
		return &types.AttributeValueMemberS{Value: v.Text}
	}
}

// decode returns the row of an item. A nil item means that there is no row. decode ignores unknown
// attributes, because dead letters and newer schemas may have them. A known attribute with a wrong
// type is an error, because lull must not decide on a part of a row.
func decode(doc shard.DocID, item map[string]types.AttributeValue) (shard.Row, error) {
	row := shard.Row{Doc: doc}
	if len(item) == 0 {
		return row, nil
	}
	for _, a := range attrs {
		av, ok := item[string(a)]
		if !ok {
			continue
		}
		v, err := value(av)
		if err == nil && !row.Set(a, v) {
			err = fmt.Errorf("has type %c", v.Kind)
		}
		if err != nil {
			return shard.Row{}, backoff.Permanent(fmt.Errorf("read row %s: attribute %s %w", doc, a, err))
		}
	}
	return row, nil
}

func value(av types.AttributeValue) (shard.Value, error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberB:
		return shard.Value{Kind: shard.KindBinary, Text: string(av.Value)}, nil
	case *types.AttributeValueMemberBS:
		return shard.KeySetValue(av.Value), nil
	case *types.AttributeValueMemberS:
		return shard.Value{Kind: shard.KindString, Text: av.Value}, nil
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(av.Value, 10, 64)
		if err != nil {
			return shard.Value{}, fmt.Errorf("is not an integer of 64 bits")
		}
		return shard.Value{Kind: shard.KindNumber, Num: n}, nil
	default:
		return shard.Value{}, fmt.Errorf("is not a B, BS, S or N")
	}
}

// textOf returns the text of a string attribute, or "" if the attribute is absent.
func textOf(av types.AttributeValue) string {
	if s, ok := av.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
