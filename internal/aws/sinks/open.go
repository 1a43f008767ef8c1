// SPDX-License-Identifier: Apache-2.0

// Package sinks opens the sinks that the settings name, with their credentials. The functions, the
// command line and the end-to-end tests use this package.
//
// Passwords come from a secret or from the environment. Errors and logs never contain a password. A
// secret is read when it is first needed, and again after a few minutes.
package sinks

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/secret"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/sink"
)

// Account says where credentials come from.
type Account struct {
	// Getenv reads the variables that auth.userEnv and auth.passwordEnv name.
	Getenv func(string) string
	// AWS finds the credentials and the region of this process. Open calls AWS only if auth needs
	// such credentials.
	AWS func(context.Context) (aws.Config, error)
	// Folder is the folder for the kinds of sinks that keep their documents in files.
	Folder string
}

// Open opens a sink of the settings. Open sends nothing to the sink. Open sends requests to AWS
// only to find the process's own credentials.
func Open(ctx context.Context, cfg *config.Config, name string, from Account) (sink.Sink, error) {
	s := cfg.Sinks[name]
	kind, ok := sink.Lookup(s.Kind)
	if !ok {
		return nil, fmt.Errorf("sinks.%s.kind: this program has no kind %q, only %s: import the package of the kind "+
			"into the program, and build it again", name, s.Kind, cmp.Or(strings.Join(sink.Kinds(), ", "), "none"))
	}
	authenticate, login, err := from.authenticate(ctx, s.Auth)
	if err != nil {
		return nil, fmt.Errorf("sinks.%s.auth: %w", name, err)
	}
	key, err := from.key(ctx, s.Auth)
	if err != nil {
		return nil, fmt.Errorf("sinks.%s.auth: %w", name, err)
	}
	opened, err := kind.Open(ctx, s, sink.Environment{
		Stack: cfg.Stack, Name: name, Collections: cfg.CollectionsOf(name), Authenticate: authenticate,
		Key: key, Login: login, Folder: from.Folder,
	})
	if err != nil {
		return nil, fmt.Errorf("sinks.%s: %w", name, err)
	}
	return opened, nil
}

// key returns a function that returns the key of auth, or nil if auth uses no key.
func (from Account) key(ctx context.Context, auth config.Auth) (func(context.Context) (string, error), error) {
	switch {
	case auth.Kind != config.AuthKey:
		return nil, nil
	case auth.SecretARN == "":
		key := strings.TrimSpace(from.Getenv(auth.KeyEnv))
		if key == "" {
			return nil, fmt.Errorf("set the environment variable that keyEnv names (%q)", auth.KeyEnv)
		}
		return func(context.Context) (string, error) { return key, nil }, nil
	}
	account, err := from.AWS(ctx)
	if err != nil {
		return nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	return secret.NewKey(account, auth.SecretARN).Get, nil
}

// authenticate returns a function that adds the credentials of auth to a request, and a login with
// these credentials. Each of the two functions is nil if auth does not need it.
func (from Account) authenticate(ctx context.Context, auth config.Auth) (func(*http.Request) error, sink.Login, error) {
	if auth.Kind == config.AuthBasic && auth.SecretARN == "" {
		user, password := from.Getenv(auth.UserEnv), from.Getenv(auth.PasswordEnv)
		if user == "" || password == "" {
			return nil, nil, fmt.Errorf("set the environment variables that userEnv and passwordEnv name (%q, %q)",
				auth.UserEnv, auth.PasswordEnv)
		}
		request, login := basic(func(context.Context) (string, string, error) { return user, password, nil })
		return request, login, nil
	}
	if auth.Kind != config.AuthBasic && auth.Kind != config.AuthSigV4 {
		return nil, nil, nil
	}
	account, err := from.AWS(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find AWS credentials: %w", err)
	}
	if auth.Kind == config.AuthBasic {
		request, login := basic(secret.NewLogin(account, auth.SecretARN).Credentials)
		return request, login, nil
	}
	region := cmp.Or(auth.Region, account.Region)
	return SigV4(account.Credentials, region, auth.Service), Token(account.Credentials, region, auth.Service), nil
}

// basic returns both: a function that adds a name and a password to requests, and a login with
// them.
func basic(credentials func(context.Context) (string, string, error)) (func(*http.Request) error, sink.Login) {
	login := func(ctx context.Context, _, _ string) (string, string, error) { return credentials(ctx) }
	return Basic(credentials), login
}
