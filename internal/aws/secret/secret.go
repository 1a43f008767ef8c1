// Package secret reads a user's name and password from Secrets Manager.
//
// A secret is read when it is first needed, and again after a few minutes. So a rotated password is
// taken up. While it cannot be read anew, the last one is used. Neither errors
// nor logs ever hold any of it.
//
// The one request is made here, signed by the SDK: the service's own client would add 200 KB to the
// index function, which has none to spare.
package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/backoff"
)

const (
	attemptTimeout = 2 * time.Second
	// fresh is how long a secret is used without asking again.
	fresh = 5 * time.Minute
	// again is how long after a failure to read it anew the next try comes, while an older one
	// serves.
	again = 15 * time.Second
)

// Login is a secret with the fields username and password, by its ARN. It is safe for concurrent
// use.
type Login struct {
	cfg aws.Config
	arn string
	now func() time.Time

	mu             sync.Mutex
	user, password string
	next           time.Time // when to read it anew; zero while there is none
}

// NewLogin returns the login in the secret with that ARN. Nothing is read yet.
func NewLogin(cfg aws.Config, arn string) *Login {
	return &Login{cfg: client.Plain(cfg), arn: arn, now: time.Now}
}

// Credentials returns the user's name and password.
func (l *Login) Credentials(ctx context.Context) (user, password string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if !l.next.IsZero() && now.Before(l.next) {
		return l.user, l.password, nil
	}
	user, password, err = l.read(ctx)
	switch {
	case err == nil:
		l.user, l.password, l.next = user, password, now.Add(fresh)
	case l.next.IsZero():
		return "", "", err
	default:
		l.next = now.Add(again)
	}
	return l.user, l.password, nil
}

func (l *Login) read(ctx context.Context) (user, password string, err error) {
	text, err := client.Attempt(ctx, client.Limit(l.cfg, attemptTimeout), l.request)
	if err != nil {
		return "", "", l.failure(err)
	}
	var fields struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	// The decoder's error may quote what it read.
	if json.Unmarshal([]byte(text), &fields) != nil || fields.Username == "" || fields.Password == "" {
		return "", "", backoff.Permanent(fmt.Errorf("secret %s: want JSON with the texts username and password", l.arn))
	}
	return fields.Username, fields.Password, nil
}

func (l *Login) failure(err error) error {
	const denied = ": the credentials may not read it: grant secretsmanager:GetSecretValue, and kms:Decrypt for a " +
		"key of your own"
	return client.Explain("secret "+l.arn, err,
		client.Final{Says: " does not exist: correct auth.secretARN", Codes: []string{"ResourceNotFound"}},
		client.Final{Says: " is marked for deletion", Codes: []string{"InvalidRequest"}},
		client.Final{Says: denied, Codes: []string{"DecryptionFailure"}},
		client.Final{Says: denied})
}
