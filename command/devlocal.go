// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/buckets"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
)

// localKind is the kind that replaces every remote sink.
const localKind = "bleve"

// inert lists the settings that only a deployed stack uses, by their names in docs/settings.md. The
// settings of the group table are also such settings.
var inert = []string{
	"sinks.<name>.liveQueue", "queues.live.maxConcurrency", "queues.bulk.maxConcurrency",
	"queues.expectedRate", "queues.maxInFlight", "lifecycle.ttlExtra", "tracing.endpoint",
}

// localized has the settings of a deployed stack that runs on this machine.
type localized struct {
	deployed config.Config
	inert    []string // settings of the file that have no effect here
	chosen   map[string]sinkFlag
}

// checkLocal checks the flags about what runs on this machine.
func (f *devFlags) checkLocal() error {
	switch {
	case !f.local:
		return nil
	case f.config == "":
		return errors.New("--local needs the settings that you deploy: add --config lull.yaml")
	}
	if _, all := f.chosen[""]; all {
		return errors.New(
			"--local and --sink: --local replaces every sink by a folder: to keep one elsewhere, name it: --sink NAME=URL",
		)
	}
	return nil
}

// localize replaces every remote sink by an index in a folder, in settings that are valid for a
// deploy. The index keeps the times of the deployed sink, because a sink without versions has
// longer leases.
func localize(cfg *config.Config, f devFlags) (*localized, error) {
	l := &localized{deployed: *cfg, chosen: f.chosen}
	l.deployed.Sinks = maps.Clone(cfg.Sinks)
	for _, name := range deployable(cfg) {
		if f.chosen[name].text != "" {
			continue
		}
		can := cfg.Sinks[name].Capabilities()
		s := inPlaceOf(cfg.Sinks[name], localKind, "")
		s.Versions, s.ApplyDelay = &can.Versions, &can.ApplyDelay
		cfg.Sinks[name] = s
	}
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("--local: with %s for every sink: %w", localKind, err)
	}
	standard := config.Default()
	for _, c := range config.Changes(&standard, &l.deployed) {
		// A sink that the defaults lack is listed with all of its settings, even the empty ones.
		if strings.Trim(c.New, `"`) != "" && (slices.Contains(inert, c.Generic) || strings.HasPrefix(c.Generic, "table.")) {
			l.inert = append(l.inert, c.Name)
		}
	}
	return l, nil
}

// describe lists what replaces each sink and bucket.
func (l *localized) describe(at map[string]string, objects string) []string {
	lines := []string{"local: the deployed settings, without credentials. These replace the deployed resources:"}
	for _, name := range slices.Sorted(maps.Keys(l.deployed.Sinks)) {
		s := l.deployed.Sinks[name]
		if at := l.chosen[name]; at.text != "" {
			lines = append(lines, fmt.Sprintf("  sink %s: --sink %s", name, at.text))
			continue
		}
		if kind, _ := sink.Lookup(s.Kind); !kind.Deployable() {
			continue
		}
		without := map[config.AuthKind]string{
			config.AuthSigV4: ", requests are not signed", config.AuthBasic: ", no password is read",
			config.AuthKey: ", no key is read",
		}[s.Auth.Kind]
		lines = append(
			lines,
			fmt.Sprintf("  sink %s: %s %s -> %s in %s%s", name, s.Kind, s.URL, localKind, at[name], without),
		)
	}
	for _, place := range l.deployed.Payload.Allow {
		line := fmt.Sprintf("  bucket %s: s3://%s/KEY -> %s", place.Bucket, place.Bucket,
			filepath.Join(objects, place.Bucket, "KEY"))
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	lines = append(lines, "  queues, table, state machine, dead letters: in this process")
	if len(l.inert) > 0 {
		lines = append(lines, "  without effect here: "+strings.Join(l.inert, ", "))
	}
	return lines
}

// openBuckets opens the folder of buckets that the flags name, or that --local has in the data
// folder.
func (o *opened) openBuckets(f *devFlags, dir string) error {
	if f.buckets == "" && !f.local {
		if f.notify {
			return errors.New("--notify: name the folder of the files with --buckets DIR")
		}
		return nil
	}
	o.bucketsAt = cmp.Or(f.buckets, filepath.Join(dir, "buckets"))
	b, err := buckets.Open(o.bucketsAt)
	if err != nil {
		return fmt.Errorf("--buckets: %w", err)
	}
	o.buckets = b
	o.closes = append(o.closes, func() { _ = b.Close() }) // the error does not matter, because nothing was written
	return nil
}

// checkNotify refuses --notify if no source would decode the notifications.
func checkNotify(cfg *config.Config, f *devFlags) error {
	for _, s := range cfg.Sources {
		if s.Kind == "s3" {
			return nil
		}
	}
	if !f.notify {
		return nil
	}
	return errors.New("--notify: the settings have no source of the kind s3, which decodes notifications of S3")
}

// watch sends notifications about the files in the folder of buckets until ctx ends.
func (r *devRun) watch(ctx context.Context) (stop func(), err error) {
	if !r.notify {
		return func() {}, nil
	}
	w := r.opened.buckets.Watch(r.clock, func(ctx context.Context, notification string) error {
		return r.engine.Publish(ctx, queue.Outgoing{Body: notification})
	})
	if err := w.Begin(ctx); err != nil {
		return nil, fmt.Errorf("--notify: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		w.Run(ctx, func(err error) { r.narrator.Say(r.clock.Now(), "%v: lull tries again", err) })
	})
	return func() { cancel(); done.Wait() }, nil
}
