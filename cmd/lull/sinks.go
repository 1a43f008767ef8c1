package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/blevesink"
	"github.com/lullhq/lull/sink/opensearch"
)

// opened is what the settings name, opened.
type opened struct {
	sinks  map[string]sink.Sink
	folder *dev.Folder // nil without --data
	from   time.Time   // the newest fence that is known: the clock does not go back behind it
	closes []func()
}

// close closes everything, the last first.
func (o *opened) close() {
	for _, f := range slices.Backward(o.closes) {
		f()
	}
}

// openSinks opens what the settings name, in the data folder or, without one, in a temporary one
// that close removes.
func (a *app) openSinks(ctx context.Context, cfg *config.Config, f *devFlags) (*opened, error) {
	o := &opened{sinks: map[string]sink.Sink{}}
	if err := a.openInto(ctx, o, cfg, f); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (a *app) openInto(ctx context.Context, o *opened, cfg *config.Config, f *devFlags) (err error) {
	dir := f.data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "lull-dev-"); err != nil {
			return fmt.Errorf("make a temporary data folder: %w", err)
		}
		o.closes = append(o.closes, func() { _ = os.RemoveAll(dir) })
	} else if where := addresses(cfg); len(where) > 0 {
		if err := dev.ClaimFolder(dir, where); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sinks)) {
		switch s := cfg.Sinks[name]; s.Kind {
		case config.SinkMemory:
			o.sinks[name] = memory.NewSink(clock.System{}, memory.SinkSettings{Versions: s.HasVersions()})
		case config.SinkBleve:
			at := dir
			if len(cfg.Sinks) > 1 {
				at = filepath.Join(dir, name)
			}
			err = o.bleve(name, at)
		case config.SinkOpenSearch:
			err = a.remote(ctx, o, cfg, name, f)
		default:
			err = fmt.Errorf("sinks.%s.kind: %s is not supported", name, s.Kind)
		}
		if err != nil {
			return err
		}
	}
	if f.data != "" {
		if o.folder, err = dev.OpenFolder(dir); err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		o.closes = append(o.closes, func() { _ = o.folder.Close() }) // each note is written at once
	}
	return nil
}

// addresses are the sinks of a stack that is not just one Bleve index, which knows its folder
// itself.
func addresses(cfg *config.Config) map[string]string {
	out := map[string]string{}
	for name, s := range cfg.Sinks {
		if s.Kind == config.SinkBleve && len(cfg.Sinks) == 1 {
			return nil
		}
		out[name] = strings.TrimSpace(string(s.Kind) + " " + s.URL)
	}
	return out
}

func (o *opened) bleve(name, dir string) error {
	index, err := blevesink.Open(dir)
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	o.closes = append(o.closes, func() { _ = index.Close() }) // what was applied is on disk
	o.sinks[name] = index
	newest, err := index.Newest()
	if err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	if at := time.UnixMicro(int64(newest)); at.After(o.from) {
		o.from = at
	}
	return nil
}

// remote connects to an OpenSearch, which has to answer.
func (a *app) remote(ctx context.Context, o *opened, cfg *config.Config, name string, f *devFlags) error {
	remote, err := a.openSearch(ctx, cfg, name)
	if err != nil {
		return err
	}
	o.closes = append(o.closes, func() { _ = remote.Close() }) // nothing is buffered
	ctx, cancel := context.WithTimeout(ctx, cfg.Index.SinkDeadline)
	defer cancel()
	if err = remote.Ping(ctx); err == nil {
		err = remote.EnsureTemplate(ctx)
	}
	switch {
	case err == nil:
		o.sinks[name] = remote
		return nil
	case f.sink != "":
		return fmt.Errorf("--sink %s: %w", f.sink, err)
	}
	return fmt.Errorf("sinks.%s.url: %w", name, err)
}

// openSearch connects to a sink of the settings with the credentials that this process has.
func (a *app) openSearch(ctx context.Context, cfg *config.Config, name string) (*opensearch.Sink, error) {
	s := cfg.Sinks[name]
	var collections []shard.Collection
	for c := range cfg.Collections {
		if to, _ := cfg.SinkFor(c); to == name {
			collections = append(collections, shard.Collection(c))
		}
	}
	o := opensearch.FromConfig(s, collections)
	o.Template = cfg.Stack + "-" + name // of its own: several may write to one cluster
	switch s.Auth.Kind {
	case config.AuthBasic:
		user, password := os.Getenv(s.Auth.UserEnv), os.Getenv(s.Auth.PasswordEnv)
		if user == "" || password == "" {
			return nil,
				fmt.Errorf("sinks.%s.auth: set the environment variables that userEnv and passwordEnv name (%q, %q)",
					name, s.Auth.UserEnv, s.Auth.PasswordEnv)
		}
		o.Auth = opensearch.Basic(func(context.Context) (string, string, error) { return user, password, nil })
	case config.AuthSigV4:
		here, err := a.aws(ctx)
		if err != nil {
			return nil, fmt.Errorf("sinks.%s.auth: find AWS credentials: %w", name, err)
		}
		region := s.Auth.Region
		if region == "" {
			region = here.Region
		}
		o.Auth = opensearch.SigV4(here.Credentials, region, s.Auth.Service)
	}
	remote, err := opensearch.New(o)
	if err != nil {
		return nil, fmt.Errorf("sinks.%s: %w", name, err)
	}
	return remote, nil
}
