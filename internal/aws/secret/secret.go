// SPDX-License-Identifier: Apache-2.0

// Package secret reads a user's name and password, a key, or headers of requests, from Secrets
// Manager.
//
// A secret is read when a request first needs the secret, and again after a few minutes. So a
// rotated password is used soon. If a later read fails, the last value stays in use. Errors and
// logs never contain a part of a secret.
//
// The package makes the only request itself, and the SDK signs it. The SDK's client for Secrets
// Manager would make the index function 200 KB larger.
package secret

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
)

const (
	attemptTimeout = 2 * time.Second
	// refreshAfter is how long a secret is used before it is read again.
	refreshAfter = 5 * time.Minute
	// retryAfter is the wait after a failed refresh. The old value stays in use until the next try.
	retryAfter = 15 * time.Second
)

// cached reads a secret and keeps its parsed value.
type cached[T any] struct {
	cfg   aws.Config
	arn   string
	now   func() time.Time
	parse func(text string) (T, bool)
	want  string // describes in words what parse expects
	named string // the setting that names the secret

	mu    sync.Mutex
	value T
	next  time.Time // when to refresh the value; zero before the first read
}

func newCached[T any](cfg aws.Config, arn, named, want string, parse func(text string) (T, bool)) cached[T] {
	return cached[T]{cfg: client.Plain(cfg), arn: arn, now: time.Now, parse: parse, want: want, named: named}
}

func (c *cached[T]) get(ctx context.Context) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if !c.next.IsZero() && now.Before(c.next) {
		return c.value, nil
	}
	value, err := c.read(ctx)
	switch {
	case err == nil:
		c.value, c.next = value, now.Add(refreshAfter)
	case c.next.IsZero():
		var none T
		return none, err
	default:
		c.next = now.Add(retryAfter)
	}
	return c.value, nil
}

func (c *cached[T]) read(ctx context.Context) (value T, err error) {
	text, err := client.Attempt(ctx, client.Limit(c.cfg, attemptTimeout), c.request)
	if err != nil {
		return value, c.failure(err)
	}
	value, ok := c.parse(text)
	if !ok {
		return value, backoff.Permanent(fmt.Errorf("secret %s: its value must be JSON with %s", c.arn, c.want))
	}
	return value, nil
}

// Login reads a secret with the fields username and password. A Login is safe for concurrent use.
type Login struct{ cached[login] }

type login struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// NewLogin returns the login in the secret with the given ARN. NewLogin does not read the secret
// yet.
func NewLogin(cfg aws.Config, arn string) *Login {
	return &Login{newCached(cfg, arn, "auth.secretARN", "the texts username and password", func(text string) (l login, ok bool) {
		return l, json.Unmarshal([]byte(text), &l) == nil && l.Username != "" && l.Password != ""
	})}
}

// Credentials returns the user's name and password.
func (l *Login) Credentials(ctx context.Context) (user, password string, err error) {
	got, err := l.get(ctx)
	return got.Username, got.Password, err
}

// Key reads a secret that is a key, or that has a key in its field key. A Key is safe for
// concurrent use.
type Key struct{ cached[string] }

// NewKey returns the key in the secret with the given ARN. NewKey does not read the secret yet.
func NewKey(cfg aws.Config, arn string) *Key {
	return &Key{newCached(cfg, arn, "auth.secretARN", "the text key, or nothing but the key", func(text string) (string, bool) {
		var fields struct {
			Key string `json:"key"`
		}
		if json.Unmarshal([]byte(text), &fields) == nil && fields.Key != "" {
			text = fields.Key
		}
		text = strings.TrimSpace(text)
		return text, text != ""
	})}
}

// Get returns the key.
func (k *Key) Get(ctx context.Context) (string, error) { return k.get(ctx) }

// Headers reads a secret with headers for requests. The type Headers is safe for concurrent use.
type Headers struct{ cached[map[string]string] }

// NewHeaders returns the headers in the secret with the given ARN. NewHeaders does not read the
// secret yet.
func NewHeaders(cfg aws.Config, arn string) *Headers {
	return &Headers{newCached(cfg, arn, "headers.secretARN", "names of headers and their values, which are texts", ParseHeaders)}
}

// Get returns the headers by name.
func (h *Headers) Get(ctx context.Context) (map[string]string, error) { return h.get(ctx) }

// ParseHeaders parses a JSON object of header names and values. ok is false for any other text, and
// if a name or a value is not allowed in a request.
func ParseHeaders(text string) (headers map[string]string, ok bool) {
	if json.Unmarshal([]byte(text), &headers) != nil || len(headers) == 0 {
		return nil, false
	}
	for name, value := range headers {
		if !headerName.MatchString(name) || !headerValue.MatchString(value) {
			return nil, false
		}
	}
	return headers, true
}

// headerName matches the names that RFC 9110 allows. headerValue matches only printable ASCII,
// although RFC 9110 allows more.
var (
	headerName  = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	headerValue = regexp.MustCompile(`^[ -~]*$`)
)

func (c *cached[T]) failure(err error) error {
	const denied = ": the credentials do not permit reading it: grant secretsmanager:GetSecretValue, and kms:Decrypt for a " +
		"key of your own"
	return client.Explain("secret "+c.arn, err,
		client.Final{Says: " does not exist: correct " + c.named, Codes: []string{"ResourceNotFound"}},
		client.Final{Says: " is marked for deletion", Codes: []string{"InvalidRequest"}},
		client.Final{Says: denied, Codes: []string{"DecryptionFailure"}},
		client.Final{Says: denied})
}
