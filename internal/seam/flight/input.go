// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"encoding/json"
	"fmt"
)

// MaxStateBytes is the greatest size of an execution's state, as input and between turns. Step
// Functions sets this quota.
const MaxStateBytes = 256 << 10

// Input returns the state as JSON. It returns an error if the JSON is larger than Step Functions
// accepts.
func (s State) Input() ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if len(b) > MaxStateBytes {
		return nil, fmt.Errorf("state has %d bytes, at most %d are allowed", len(b), MaxStateBytes)
	}
	return b, nil
}
