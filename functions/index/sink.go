package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/secret"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink/opensearch"
)

// newSink is the sink that the settings describe, with credentials that are read when they are
// first needed.
func newSink(account aws.Config, s *lambda.Setup) (*opensearch.Sink, error) {
	settings := s.Config.Sinks[s.Sink]
	if settings.Kind != config.SinkOpenSearch {
		return nil, fmt.Errorf("sink %s is of kind %s: a function writes to opensearch", s.Sink, settings.Kind)
	}
	var collections []shard.Collection
	for name := range s.Config.Collections {
		if of, _ := s.Config.SinkFor(name); of == s.Sink {
			collections = append(collections, shard.Collection(name))
		}
	}
	options := opensearch.FromConfig(settings, collections)
	switch auth := settings.Auth; auth.Kind {
	case config.AuthBasic:
		options.Auth = opensearch.Basic(login(account, auth, s.Getenv))
	case config.AuthSigV4:
		options.Auth = opensearch.SigV4(account.Credentials, cmp.Or(auth.Region, account.Region), auth.Service)
	}
	sink, err := opensearch.New(options)
	if err != nil {
		return nil, fmt.Errorf("sink %s: %w", s.Sink, err)
	}
	return sink, nil
}

// login is where the name and the password come from: a secret, or two variables of the
// environment.
func login(account aws.Config, auth config.Auth, getenv func(string) string) func(context.Context) (user,
	password string, err error) {
	if auth.SecretARN != "" {
		return secret.NewLogin(account, auth.SecretARN).Credentials
	}
	return func(context.Context) (string, string, error) {
		user, password := getenv(auth.UserEnv), getenv(auth.PasswordEnv)
		if user == "" || password == "" {
			return "", "", fmt.Errorf("%s are not set", strings.Join([]string{auth.UserEnv, auth.PasswordEnv}, " and "))
		}
		return user, password, nil
	}
}
