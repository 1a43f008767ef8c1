// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

// serviceAccount returns a Google credentials file for a service account. The tokens come from the
// server at the address tokens.
func serviceAccount(t *testing.T, tokens string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "writer@p.iam.gserviceaccount.com", "token_uri": tokens,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "private_key_id": "k1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The sink gets a token for the key of a service account, and uses the token for many requests. If
// the key is rotated, the sink uses the new key.
func TestAServiceAccountGetsATokenOnce(t *testing.T) {
	t.Parallel()
	asked := 0
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || strings.Count(r.FormValue("assertion"), ".") != 2 {
			t.Errorf("asked for a token by %v", r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":3600}`, asked)
	}))
	defer tokens.Close()
	text := serviceAccount(t, tokens.URL)
	k := newKeyed(func(context.Context) (string, error) { return text, nil })
	for _, want := range []string{"token-1", "token-1", "token-2"} {
		if want == "token-2" {
			text = strings.Replace(text, `"k1"`, `"k2"`, 1)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if err := k.authenticate(r); err != nil || r.Header.Get("Authorization") != "Bearer "+want {
			t.Errorf("got %q, %v, want %s", r.Header.Get("Authorization"), err, want)
		}
	}
}

func TestKeysThatAreNotCredentials(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "hunter2", `{}`, `{"type":"hunter2"}`, `{"type":"service_account","private_key":"hunter2"}`,
		`{"type":"impersonated_service_account"}`, `["hunter2"]`,
	} {
		k := newKeyed(func(context.Context) (string, error) { return text, nil })
		err := k.authenticate(httptest.NewRequest(http.MethodGet, "/", nil))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	denied := errors.New("denied")
	k := newKeyed(func(context.Context) (string, error) { return "", denied })
	if err := k.authenticate(httptest.NewRequest(http.MethodGet, "/", nil)); !errors.Is(err, denied) {
		t.Errorf("got %v", err)
	}
}

// The file that gcloud writes for a person names the project that pays for the requests.
func TestApplicationDefaultCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adc.json")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	_, _, err := newKeyed(applicationDefault).source(t.Context())
	if err == nil || !strings.Contains(err.Error(), "gcloud auth") {
		t.Errorf("without a file: got %v", err)
	}
	file := `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r","quota_project_id":"p"}`
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	from, quota, err := newKeyed(applicationDefault).source(t.Context())
	if err != nil || from == nil || quota != "p" {
		t.Fatalf("got %v, %s, %v", from, quota, err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if err := bearer(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "t"}), quota, r); err != nil ||
		r.Header.Get("X-Goog-User-Project") != "p" || r.Header.Get("Authorization") != "Bearer t" {
		t.Errorf("got %v, %v", r.Header, err)
	}
}

// roundTrip is a transport that answers requests itself, without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A signed request, which Google sends to AWS, proves the function's role. Google then gives a
// token of the service account.
func TestARoleOfAWSBecomesAServiceAccount(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	t.Setenv("AWS_REGION", "eu-west-1")
	const audience = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/aws/providers/lull"
	var asked []string
	google := roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Host+r.URL.Path)
		body, _ := io.ReadAll(r.Body)
		answer := `{"accessToken":"google","expireTime":"2099-01-01T00:00:00Z"}`
		if r.URL.Host == "sts.googleapis.com" {
			form, err := url.ParseQuery(string(body))
			if err != nil {
				t.Fatal(err)
			}
			subject, err := url.QueryUnescape(form.Get("subject_token"))
			if err != nil || form.Get("audience") != audience || strings.Contains(subject, "hunter2") {
				t.Errorf("got %s, %v", subject, err)
			}
			for _, want := range []string{
				"https://sts.eu-west-1.amazonaws.com?Action=GetCallerIdentity", "Credential=AKIDEXAMPLE/", "x-goog-cloud-target-resource",
				"session", audience,
			} {
				if !strings.Contains(subject, want) {
					t.Errorf("the proof lacks %s: %s", want, subject)
				}
			}
			answer = `{"access_token":"federated","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}`
		} else if r.Header.Get("Authorization") != "Bearer federated" {
			t.Errorf("%s is asked with %q", r.URL, r.Header.Get("Authorization"))
		}
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(answer)),
		}, nil
	})
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, &http.Client{Transport: google})
	authenticate, err := federated(ctx, audience, "lull@p.iam.gserviceaccount.com")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if err := authenticate(r); err != nil || r.Header.Get("Authorization") != "Bearer google" {
			t.Fatalf("got %v, %v", r.Header, err)
		}
	}
	want := "sts.googleapis.com/v1/token " +
		"iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/lull@p.iam.gserviceaccount.com:generateAccessToken"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}
