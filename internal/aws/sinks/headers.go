// SPDX-License-Identifier: Apache-2.0

package sinks

import (
	"context"
	"fmt"
	"sync"

	"github.com/lullhq/lull/internal/aws/secret"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/source"
)

// Headers returns a function that returns the headers that the settings name, or nil if they name
// none. The function reads the secret, and finds credentials, when the first request needs them.
func (from Account) Headers(h source.Headers) (payload.HeadersOf, error) {
	switch {
	case h.SecretARN != "":
		open := sync.OnceValues(func() (*secret.Headers, error) {
			account, err := from.AWS(context.Background())
			return secret.NewHeaders(account, h.SecretARN), err
		})
		return func(ctx context.Context) (map[string]string, error) {
			headers, err := open()
			if err != nil {
				return nil, fmt.Errorf("find AWS credentials: %w", err)
			}
			return headers.Get(ctx)
		}, nil
	case h.Env != "":
		headers, ok := secret.ParseHeaders(from.Getenv(h.Env))
		if !ok {
			return nil, fmt.Errorf("set the environment variable %s to a JSON object of header names and values", h.Env)
		}
		return func(context.Context) (map[string]string, error) { return headers, nil }, nil
	}
	return nil, nil
}
