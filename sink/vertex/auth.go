// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/google/externalaccount"
)

const (
	scope = "https://www.googleapis.com/auth/cloud-platform"
	// tokenTimeout is the time-out of a request for a token. This time-out is short because writes
	// wait for the token.
	tokenTimeout = 3 * time.Second
)

// tokenContext returns a context for requests for tokens. Many requests use one token, so the
// context does not depend on one request.
func tokenContext() context.Context {
	return context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenTimeout})
}

// bearer adds a token to a request. If the credentials belong to a person, bearer also adds the
// project that pays.
func bearer(from oauth2.TokenSource, quota string, r *http.Request) error {
	token, err := from.Token()
	if err != nil {
		return fmt.Errorf("get a token from Google: %w", err)
	}
	token.SetAuthHeader(r)
	if quota != "" {
		r.Header.Set("X-Goog-User-Project", quota)
	}
	return nil
}

// federated returns a function that exchanges the AWS credentials of the function's role for a
// token of Google. So no secret of Google is stored. The credentials of the role are in the
// environment of a Lambda function.
func federated(ctx context.Context, audience, account string) (func(*http.Request) error, error) {
	config := externalaccount.Config{ //nolint:gosec // addresses, and no credentials
		Audience: audience, SubjectTokenType: "urn:ietf:params:aws:token-type:aws4_request",
		TokenURL: "https://sts.googleapis.com/v1/token", Scopes: []string{scope},
		CredentialSource: &externalaccount.CredentialSource{ //nolint:gosec // an address
			EnvironmentID:               "aws1",
			RegionalCredVerificationURL: "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
		},
	}
	if account != "" {
		config.ServiceAccountImpersonationURL = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" + account +
			":generateAccessToken"
	}
	from, err := externalaccount.NewTokenSource(ctx, config)
	if err != nil {
		return nil, err
	}
	from = oauth2.ReuseTokenSource(nil, from)
	return func(r *http.Request) error { return bearer(from, "", r) }, nil
}

// keyed contains credentials from the text of a Google credentials file. key returns the text. If
// the text changes, keyed uses the new credentials.
type keyed struct {
	key func(context.Context) (string, error)

	mu    sync.Mutex
	text  string
	from  oauth2.TokenSource
	quota string
}

func newKeyed(key func(context.Context) (string, error)) *keyed { return &keyed{key: key} }

var errKey = errors.New("the key is not a Google credentials file: use JSON with the type service_account, " +
	"external_account or authorized_user")

func (k *keyed) authenticate(r *http.Request) error {
	from, quota, err := k.source(r.Context())
	if err != nil {
		return err
	}
	return bearer(from, quota, r)
}

func (k *keyed) source(ctx context.Context) (oauth2.TokenSource, string, error) {
	text, err := k.key(ctx)
	if err != nil {
		return nil, "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.from != nil && text == k.text {
		return k.from, k.quota, nil
	}
	var file struct {
		Type  google.CredentialsType `json:"type"`
		Quota string                 `json:"quota_project_id"`
	}
	if json.Unmarshal([]byte(text), &file) != nil {
		return nil, "", errKey
	}
	switch file.Type {
	case google.ServiceAccount, google.ExternalAccount, google.AuthorizedUser:
	default:
		return nil, "", errKey
	}
	credentials, err := google.CredentialsFromJSONWithType(tokenContext(), []byte(text), file.Type, scope)
	if err != nil {
		return nil, "", errKey // the library's error may quote the file
	}
	k.text, k.from, k.quota = text, credentials.TokenSource, file.Quota
	return k.from, k.quota, nil
}

// applicationDefault reads the file that Google's tools write for programs on this machine.
func applicationDefault(context.Context) (string, error) {
	path := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	if home, err := os.UserHomeDir(); path == "" && err == nil {
		path = filepath.Join(home, ".config", "gcloud", "application_default_credentials.json")
	}
	text, err := os.ReadFile(path) //nolint:gosec // the user of lull names the file
	if err != nil {
		return "", errors.New("there are no Google credentials: set auth.kind: key or vertex.audience; on your machine, " +
			"run: " +
			"gcloud auth application-default login")
	}
	return string(text), nil
}
