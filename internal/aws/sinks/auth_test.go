// SPDX-License-Identifier: Apache-2.0

package sinks

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

type provider struct{ err error }

func (p provider) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: "session"}, p.err
}

// A token has the form that RDS expects: an address without its scheme, with the signature in the
// query.
func TestATokenIsASignedAddressWithoutItsScheme(t *testing.T) {
	t.Parallel()
	login := Token(provider{}, "eu-west-1", "rds-db")
	user, token, err := login(t.Context(), "db.example.org:5432", "lull")
	if err != nil || user != "lull" || !strings.HasPrefix(token, "db.example.org:5432/?") || strings.Contains(token, "secret") {
		t.Fatalf("got %q, %q, %v", user, token, err)
	}
	u, err := url.Parse("https://" + token)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"Action": "connect", "DBUser": "lull", "X-Amz-Expires": "900", "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
		"X-Amz-SignedHeaders": "host", "X-Amz-Security-Token": "session",
	} {
		if got := q.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if scope := q.Get("X-Amz-Credential"); !strings.HasSuffix(scope, "/eu-west-1/rds-db/aws4_request") || len(q.Get("X-Amz-Signature")) != 64 {
		t.Errorf("scope %q, signature %q", scope, q.Get("X-Amz-Signature"))
	}
	if _, _, err := Token(provider{errors.New("expired")}, "eu-west-1", "rds-db")(t.Context(), "db:1", "lull"); err == nil {
		t.Error("Token returned no error, although there are no credentials")
	}
}
