// SPDX-License-Identifier: Apache-2.0

// Package sigv4 signs the questions of package searchable for the URL of a deployed stack, which
// only answers principals with the rights lambda:InvokeFunctionUrl and lambda:InvokeFunction.
package sigv4

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Sign returns a function for [searchable.Client.Sign]. It signs with the credentials and the
// region of cfg, which the AWS SDK loads. The function is safe for concurrent use.
//
// [searchable.Client.Sign]: https://pkg.go.dev/github.com/lullhq/lull/searchable#Client
func Sign(cfg aws.Config) func(*http.Request) error {
	signer := v4.NewSigner()
	empty := sha256.Sum256(nil)
	hash := hex.EncodeToString(empty[:]) // questions have no body
	return func(r *http.Request) error {
		if cfg.Credentials == nil || cfg.Region == "" {
			return errors.New("the AWS configuration has no credentials or no region")
		}
		who, err := cfg.Credentials.Retrieve(r.Context())
		if err != nil {
			return fmt.Errorf("get credentials: %w", err)
		}
		return signer.SignHTTP(r.Context(), who, r, hash, "lambda", cfg.Region, time.Now())
	}
}
