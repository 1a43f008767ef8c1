// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/lullhq/lull/internal/aws/enrichers"
	"github.com/lullhq/lull/internal/aws/sinks"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/buckets"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/sink/builtin/local"
	_ "github.com/lullhq/lull/source/builtin"
)

// opened has the opened sinks, buckets and services of the settings.
type opened struct {
	account sinks.Account // how this process reaches services
	out     io.Writer     // gets a line when lull waits for a sink

	sinks  map[string]sink.Sink
	folder *dev.Folder // nil without --data
	from   time.Time   // the newest known fence; the clock must not be set to an earlier time
	closes []func()

	enrichers map[shard.Collection]enrich.Caller
	at        map[string]string // the folder of each sink, by name
	untouched []string          // sinks that could be prepared, but were not
	bucketsAt string            // the folder of the buckets; empty for none
	buckets   *buckets.Folder   // nil for none
}

// close closes everything, in reverse order.
func (o *opened) close() {
	for _, f := range slices.Backward(o.closes) {
		f()
	}
}

// openSinks opens the sinks of the settings in the data folder. Without a data folder, it uses a
// temporary one, which close removes.
func openSinks(ctx context.Context, out io.Writer, find credentials, cfg *config.Config, f *devFlags) (*opened, error) {
	o := &opened{
		account: sinks.Account{Getenv: os.Getenv, AWS: find}, out: out,
		sinks: map[string]sink.Sink{}, at: map[string]string{},
	}
	if err := o.open(ctx, cfg, f); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *opened) open(ctx context.Context, cfg *config.Config, f *devFlags) (err error) {
	dir := f.data
	var keepClaim func() error
	if dir == "" {
		if dir, err = os.MkdirTemp("", "lull-dev-"); err != nil {
			return fmt.Errorf("make a temporary data folder: %w", err)
		}
		o.closes = append(o.closes, func() { _ = os.RemoveAll(dir) })
	} else if keepClaim, err = dev.ClaimFolder(dir, cfg); err != nil {
		return fmt.Errorf("--data: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sinks)) {
		at := dir
		if len(cfg.Sinks) > 1 {
			at = filepath.Join(dir, name)
		}
		o.at[name] = at
		if err := o.openOne(ctx, cfg, name, at, f.prepare); err != nil {
			return sinkError(cfg, name, f, err)
		}
	}
	if o.enrichers, err = openEnrichers(ctx, o.account, cfg); err != nil {
		return err
	}
	if err := o.openBuckets(f, dir); err != nil {
		return err
	}
	if f.data != "" {
		if o.folder, err = dev.OpenFolder(dir); err == nil {
			err = keepClaim()
		}
		if err != nil {
			return fmt.Errorf("--data: %w", err)
		}
		if o.folder.From().After(o.from) {
			o.from = o.folder.From()
		}
		o.closes = append(o.closes, func() { _ = o.folder.Close() }) // the folder was saved before
	}
	return nil
}

// openOne opens one sink and waits until it answers. With prepare, it prepares the sink for its
// first document.
func (o *opened) openOne(ctx context.Context, cfg *config.Config, name, folder string, prepare bool) error {
	account := o.account
	account.Folder = folder
	s, err := sinks.Open(ctx, cfg, name, account)
	if err != nil {
		return err
	}
	o.closes = append(o.closes, func() { closeSink(s) })
	err = dev.Reach(ctx, clock.System{}, s, cfg.Index.SinkDeadline, func(why error) {
		terminal.Printf(o.out, "sink %s: %v: lull asks again until it answers\n", name, why)
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Index.SinkDeadline)
	defer cancel()
	switch p, ok := s.(sink.Preparer); {
	case ok && prepare:
		if err := p.Prepare(ctx); err != nil {
			return err
		}
	case ok:
		o.untouched = append(o.untouched, name)
	}
	if kept, ok := s.(interface{ Newest() (shard.Fence, error) }); ok {
		newest, err := kept.Newest()
		if err != nil {
			return err
		}
		if at := time.UnixMicro(int64(newest)); at.After(o.from) {
			o.from = at
		}
	}
	o.sinks[name] = s
	return nil
}

// sinkError adds to an error the flag or the setting that named the sink's address.
func sinkError(cfg *config.Config, name string, f *devFlags, err error) error {
	kind, _ := sink.Lookup(cfg.Sinks[name].Kind)
	own := f.chosen[name]
	if all, ok := f.chosen[""]; ok {
		own = all
	}
	switch {
	case kind.InFolder:
		return fmt.Errorf("--data: %w", err)
	case own.text != "" && errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("--sink %s: %w: start the engine there, or correct the address", own.text, err)
	case own.text != "":
		return fmt.Errorf("--sink %s: %w", own.text, err)
	}
	return fmt.Errorf("sinks.%s.url: %w: correct it, or run with --local, which needs no sink", name, err)
}

// deployable returns the names of the sinks that a deployed stack has. That includes sinks of kinds
// that this program does not link, because another program deployed them.
func deployable(cfg *config.Config) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(cfg.Sinks)), func(name string) bool {
		kind, linked := sink.Lookup(cfg.Sinks[name].Kind)
		return linked && !kind.Deployable()
	})
}

// openSink opens a sink of the settings with the credentials that this process has.
func openSink(ctx context.Context, find credentials, cfg *config.Config, name string) (sink.Sink, error) {
	return sinks.Open(ctx, cfg, name, sinks.Account{Getenv: os.Getenv, AWS: find})
}

// openEnrichers opens the services that enrich documents, for all sinks.
func openEnrichers(ctx context.Context, account sinks.Account, cfg *config.Config) (map[shard.Collection]enrich.Caller,
	error,
) {
	all := map[shard.Collection]enrich.Caller{}
	for name := range cfg.Sinks {
		of, err := enrichers.Open(ctx, cfg, name, account)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, of)
	}
	return all, nil
}

// closeSink closes a sink if it has a Close method. The error does not matter, because a sink
// buffers nothing.
func closeSink(s sink.Sink) {
	if c, ok := s.(io.Closer); ok {
		_ = c.Close()
	}
}
