package tree

import (
	"fmt"
	"io"
)

// Read reads a settings file to its end, but no more than MaxBytes. A larger one is an error that
// is ErrTooLarge.
func Read(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("settings file: %w", ErrTooLarge)
	}
	return text, nil
}
