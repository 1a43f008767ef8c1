package opensearch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	opensearchsigner "github.com/opensearch-project/opensearch-go/v4/signer"
)

// Auth authenticates a request by changing its headers. It is called for every request, and where
// it fails nothing is sent. Its errors must not quote secrets.
type Auth func(*http.Request) error

// Basic sends a user's name and password, which credentials gives. It is called for every request,
// so that a rotated password is taken up, and should cache.
func Basic(credentials func(context.Context) (user, password string, err error)) Auth {
	return func(r *http.Request) error {
		user, password, err := credentials(r.Context())
		if err != nil {
			return fmt.Errorf("get user and password: %w", err)
		}
		r.SetBasicAuth(user, password)
		return nil
	}
}

// Services to sign for.
const (
	ServiceDomain     = "es"   // Amazon OpenSearch Service
	ServiceServerless = "aoss" // its serverless collections
)

// SigV4 signs requests for AWS with the credentials of provider, which should cache.
func SigV4(provider aws.CredentialsProvider, region, service string) Auth {
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
		// Serverless collections require it as a header.
		r.Header.Set("X-Amz-Content-Sha256", digest)
		if err := s.SignHTTP(r.Context(), credentials, r, digest, service, region, time.Now()); err != nil {
			return fmt.Errorf("sign request: %w", err)
		}
		return nil
	}
}

// payloadHash reads the body through GetBody, so that the one to be sent stays unread.
func payloadHash(r *http.Request) (string, error) {
	h := sha256.New()
	if r.Body != nil && r.Body != http.NoBody {
		if r.GetBody == nil {
			return "", errors.New("sign request: its body can be read only once")
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

// signer fits an Auth into the client library.
func signer(a Auth) opensearchsigner.Signer {
	if a == nil {
		return nil
	}
	return authSigner(a)
}

type authSigner Auth

// SignRequest is called by the library right before it sends.
func (a authSigner) SignRequest(r *http.Request) error {
	if err := a(r); err != nil {
		return &authError{err}
	}
	return nil
}

// authError says that a request was not sent because it could not be authenticated.
type authError struct{ err error }

func (e *authError) Error() string { return e.err.Error() }
func (e *authError) Unwrap() error { return e.err }

// OverrideSigningPort is part of the library's interface; the port in the URL is the one that is
// signed.
func (authSigner) OverrideSigningPort(uint16) {}
