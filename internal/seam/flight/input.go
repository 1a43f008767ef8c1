package flight

import (
	"encoding/json"
	"fmt"
)

// MaxStateBytes is how large the state of an execution may be, as its input and between its turns:
// a quota of Step Functions.
const MaxStateBytes = 256 << 10

// Input is the state as Step Functions takes it, or why Step Functions refuses it.
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
