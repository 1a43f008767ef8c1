// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a settings file, but no more than MaxBytes. For a larger file, the error wraps
// ErrTooLarge. Errors name the file.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open settings: %w", err)
	}
	defer file.Close()
	text, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: read settings: %w", path, err)
	}
	return text, nil
}

func read(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(text) > MaxBytes {
		err = ErrTooLarge
	}
	return text, err
}
