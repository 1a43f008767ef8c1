package opensearch

import (
	"net/http"

	opensearchsigner "github.com/opensearch-project/opensearch-go/v4/signer"
)

// serviceServerless is the service that requests to a serverless collection are signed for.
const serviceServerless = "aoss"

// signer fits [Options.Authenticate] into the client library.
func signer(authenticate func(*http.Request) error) opensearchsigner.Signer {
	if authenticate == nil {
		return nil
	}
	return authSigner(authenticate)
}

type authSigner func(*http.Request) error

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
