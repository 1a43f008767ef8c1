// SPDX-License-Identifier: Apache-2.0

package sigv4_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/searchable"
	"github.com/lullhq/lull/searchable/sigv4"
)

const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // the SHA-256 of an empty body

// verified answers only requests whose signature a signer computes again from what arrived.
func verified(t *testing.T, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if err != nil {
			t.Errorf("X-Amz-Date: %v", err)
		}
		again := httptest.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), http.NoBody)
		who := aws.Credentials{AccessKeyID: "AK", SecretAccessKey: "secret", SessionToken: "token"}
		if err := v4.NewSigner().SignHTTP(r.Context(), who, again, nothing, "lambda", "eu-west-1", at); err != nil {
			t.Error(err)
		}
		if got, want := r.Header.Get("Authorization"), again.Header.Get("Authorization"); got != want ||
			!strings.Contains(got, "/eu-west-1/lambda/aws4_request") || r.Header.Get("X-Amz-Security-Token") != "token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func TestAQuestionIsSignedAsItIsSent(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a", "vienna 2026", "ä/?&#+%", "a~b*c'd(e)"} {
		stack := httptest.NewServer(verified(t, searchability.Handler(alwaysYes, func(error) {})))
		c := searchable.Client{URL: stack.URL, HTTP: stack.Client(), Sign: sigv4.Sign(aws.Config{
			Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AK", "secret", "token"),
		})}
		if a, err := c.Wait(t.Context(), "content", id, "7"); err != nil || a.Key != "content#"+id {
			t.Errorf("%s: got %+v, %v", id, a, err)
		}
		stack.Close()
	}
}

func TestAQuestionWithoutCredentialsIsNotSent(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/searchable", http.NoBody)
	for _, cfg := range []aws.Config{{}, {Region: "eu-west-1"}, {Credentials: credentials.NewStaticCredentialsProvider("AK", "s", "")}} {
		if err := sigv4.Sign(cfg)(r); err == nil || r.Header.Get("Authorization") != "" {
			t.Errorf("region %q: got %v", cfg.Region, err)
		}
	}
	refused := errors.New("expired")
	cfg := aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, refused
	})}
	if err := sigv4.Sign(cfg)(r); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func alwaysYes(_ context.Context, q searchable.Question) (searchable.Answer, error) {
	return searchable.Answer{Key: q.Key, Searchable: searchable.Yes}, nil
}
