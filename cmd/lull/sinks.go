package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/sink"
	"github.com/lullhq/lull/internal/sink/blevesink"
	"github.com/lullhq/lull/internal/sink/opensearch"
)

// openSinks opens what the settings name. dir is the data folder of the Bleve indexes.
func openSinks(ctx context.Context, cfg *config.Config, f *devFlags) (sinks map[string]sink.Sink, dir string, closeAll func(), err error) {
	sinks = map[string]sink.Sink{}
	var closers []func()
	closing := func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	defer func() {
		if err != nil {
			closing()
		}
	}()
	if dir = f.data; dir == "" {
		if dir, err = os.MkdirTemp("", "lull-dev-"); err != nil {
			return nil, "", nil, fmt.Errorf("make a temporary data folder: %w", err)
		}
		closers = append(closers, func() { _ = os.RemoveAll(dir) })
	}
	for name, s := range cfg.Sinks {
		switch s.Kind {
		case config.SinkMemory:
			sinks[name] = memory.NewSink(clock.System{}, memory.SinkSettings{Versions: s.HasVersions()})
		case config.SinkBleve:
			at := dir
			if len(cfg.Sinks) > 1 {
				at = filepath.Join(dir, name)
			}
			index, err := blevesink.Open(at)
			if err != nil {
				return nil, "", nil, fmt.Errorf("--data: %w", err)
			}
			closers = append(closers, func() { _ = index.Close() })
			sinks[name] = index
			if newest, err := index.Newest(); err != nil {
				return nil, "", nil, fmt.Errorf("--data: %w", err)
			} else if at := time.UnixMicro(int64(newest)); at.After(f.from) {
				f.from = at
			}
		case config.SinkOpenSearch:
			remote, err := openSearch(ctx, cfg, name)
			if err != nil {
				return nil, "", nil, err
			}
			if err := errors.Join(remote.Ping(ctx), remote.EnsureTemplate(ctx)); err != nil {
				return nil, "", nil, fmt.Errorf("sinks.%s.url: %w", name, err)
			}
			closers = append(closers, func() { _ = remote.Close() })
			sinks[name] = remote
		default:
			return nil, "", nil, fmt.Errorf("sinks.%s.kind: %s is not supported", name, s.Kind)
		}
	}
	return sinks, dir, closing, nil
}

// openSearch connects to a sink of the settings with the credentials that this process has.
func openSearch(ctx context.Context, cfg *config.Config, name string) (*opensearch.Sink, error) {
	s := cfg.Sinks[name]
	var collections []shard.Collection
	for c := range cfg.Collections {
		if to, _ := cfg.SinkFor(c); to == name {
			collections = append(collections, shard.Collection(c))
		}
	}
	o := opensearch.FromConfig(s, collections)
	switch s.Auth.Kind {
	case config.AuthBasic:
		user, password := os.Getenv(s.Auth.UserEnv), os.Getenv(s.Auth.PasswordEnv)
		if user == "" || password == "" {
			return nil, fmt.Errorf("sinks.%s.auth: set the environment variables that userEnv and passwordEnv name (%q, %q)", name, s.Auth.UserEnv, s.Auth.PasswordEnv)
		}
		o.Auth = opensearch.Basic(func(context.Context) (string, string, error) { return user, password, nil })
	case config.AuthSigV4:
		a, err := awsconfig.LoadDefaultConfig(ctx)
		if err != nil {
			return nil, fmt.Errorf("sinks.%s.auth: find AWS credentials: %w", name, err)
		}
		region := s.Auth.Region
		if region == "" {
			region = a.Region
		}
		o.Auth = opensearch.SigV4(a.Credentials, region, s.Auth.Service)
	}
	remote, err := opensearch.New(o)
	if err != nil {
		return nil, fmt.Errorf("sinks.%s: %w", name, err)
	}
	return remote, nil
}
