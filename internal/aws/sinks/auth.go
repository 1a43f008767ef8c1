// SPDX-License-Identifier: Apache-2.0

package sinks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/lullhq/lull/sink"
)

// Basic returns a function that adds a user's name and password to a request. Basic calls
// credentials for every request, so that a rotated password is used. credentials should cache its
// result.
func Basic(credentials func(context.Context) (user, password string, err error)) func(*http.Request) error {
	return func(r *http.Request) error {
		user, password, err := credentials(r.Context())
		if err != nil {
			return fmt.Errorf("get user and password: %w", err)
		}
		r.SetBasicAuth(user, password)
		return nil
	}
}

// SigV4 returns a function that signs requests for AWS with the credentials of provider. provider
// should cache the credentials.
func SigV4(provider aws.CredentialsProvider, region, service string) func(*http.Request) error {
	s := v4.NewSigner()
	return func(r *http.Request) error {
		credentials, err := provider.Retrieve(r.Context())
		if err != nil {
			return fmt.Errorf("get AWS credentials: %w", err)
		}
		digest, err := payloadHash(r)
		if err != nil {
			return err
		}
		// Serverless collections require the digest as a header.
		r.Header.Set("X-Amz-Content-Sha256", digest)
		if err := s.SignHTTP(r.Context(), credentials, r, digest, service, region, time.Now()); err != nil {
			return fmt.Errorf("sign request: %w", err)
		}
		return nil
	}
}

// emptyHash is the SHA-256 of an empty body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Token returns a login for an RDS database with IAM authentication. The password is a token: an
// address that is signed for 15 minutes with the credentials of provider.
func Token(provider aws.CredentialsProvider, region, service string) sink.Login {
	s := v4.NewSigner()
	return func(ctx context.Context, address, user string) (string, string, error) {
		credentials, err := provider.Retrieve(ctx)
		if err != nil {
			return "", "", fmt.Errorf("get AWS credentials: %w", err)
		}
		query := url.Values{"Action": {"connect"}, "DBUser": {user}, "X-Amz-Expires": {"900"}}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/?"+query.Encode(), http.NoBody)
		if err != nil {
			return "", "", fmt.Errorf("sign token: %w", err)
		}
		signed, _, err := s.PresignHTTP(ctx, credentials, r, emptyHash, service, region, time.Now())
		if err != nil {
			return "", "", fmt.Errorf("sign token: %w", err)
		}
		return user, strings.TrimPrefix(signed, "https://"), nil
	}
}

// payloadHash returns the digest of the body. payloadHash reads the body through GetBody, so that
// the request's own body stays unread.
func payloadHash(r *http.Request) (string, error) {
	h := sha256.New()
	if r.Body != nil && r.Body != http.NoBody {
		if r.GetBody == nil {
			return "", errors.New("sign request: the body of the request can be read only once")
		}
		body, err := r.GetBody()
		if err != nil {
			return "", fmt.Errorf("sign request: %w", err)
		}
		defer body.Close()
		if _, err := io.Copy(h, body); err != nil {
			return "", fmt.Errorf("sign request: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
