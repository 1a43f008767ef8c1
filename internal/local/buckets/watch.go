// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
)

// look is how often a Watcher looks at the folder.
const look = time.Second

// Watcher sends a notification if a file appears, changes or disappears, as S3 does for objects.
// Only one goroutine may use a Watcher.
type Watcher struct {
	files fs.FS
	clk   clock.Clock
	send  func(ctx context.Context, notification string) error
	known map[string]stamp // by name: the state of the file at its last notification
	seen  map[string]stamp // by name: the state of the file at the last look
	last  int64            // the sequencer of the last notification
}

// stamp is the modification time and the size of a file. If the stamp differs, the file has
// changed.
type stamp struct {
	written time.Time
	size    int64
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.ModTime(), info.Size()} }

// tag returns a text that serves as S3's entity tag.
func (s stamp) tag() string { return fmt.Sprintf("%x-%x", s.written.UnixNano(), s.size) }

// Watch returns a watcher that calls send with each notification. Watch ignores files and folders
// whose names begin with a dot.
func (f *Folder) Watch(clk clock.Clock, send func(ctx context.Context, notification string) error) *Watcher {
	return &Watcher{files: f.root.FS(), clk: clk, send: send, known: map[string]stamp{}, seen: map[string]stamp{}}
}

// Begin sends a notification for every existing file.
func (w *Watcher) Begin(ctx context.Context) error {
	var err error
	if w.seen, err = w.list(); err != nil {
		return err
	}
	return w.Look(ctx)
}

// Look sends a notification for each file that has changed. Look waits until a file is the same in
// two looks, because a file that still changes may be incomplete. If a notification cannot be sent,
// the next look sends it.
func (w *Watcher) Look(ctx context.Context) error {
	now, err := w.list()
	if err != nil {
		return err
	}
	was := w.seen
	w.seen = now
	for _, name := range sorted(now) {
		if now[name] != was[name] || now[name] == w.known[name] {
			continue
		}
		if err := w.notify(ctx, "ObjectCreated:Put", name, now[name]); err != nil {
			return err
		}
		w.known[name] = now[name]
	}
	for _, name := range sorted(w.known) {
		if _, there := now[name]; there {
			continue
		}
		if err := w.notify(ctx, "ObjectRemoved:Delete", name, stamp{}); err != nil {
			return err
		}
		delete(w.known, name)
	}
	return nil
}

// Run calls Look once a second until ctx ends. Run calls report with each error, and the next look
// tries again.
func (w *Watcher) Run(ctx context.Context, report func(error)) {
	for w.clk.Sleep(ctx, look) == nil {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

// list returns the existing files. If a file cannot be read now, for example because a permission
// is missing, list returns its last state. Such a file still exists, so its documents must not be
// deleted.
func (w *Watcher) list() (map[string]stamp, error) {
	found := map[string]stamp{}
	stays := func(name string, err error) {
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		for file, was := range w.seen {
			if file == name || strings.HasPrefix(file, name+"/") {
				found[file] = was
			}
		}
	}
	err := fs.WalkDir(w.files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			stays(name, err)
			return nil
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular() || !strings.Contains(name, "/"): // a file must be inside the folder of a bucket
			return nil
		}
		if info, err := d.Info(); err != nil {
			stays(name, err)
		} else {
			found[name] = stampOf(info)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("watch the folder of buckets: %w", err)
	}
	return found, nil
}

// notify sends a notification in S3's format. The sequencer is the current time, and not the time
// of the file, because an older file may replace a newer one.
func (w *Watcher) notify(ctx context.Context, what, name string, is stamp) error {
	now := w.clk.Now()
	w.last = max(w.last+1, now.UnixNano())
	bucket, key, _ := strings.Cut(name, "/")
	type object map[string]any
	body, err := json.Marshal(object{"Records": []object{{
		"eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "local", "eventName": what,
		"eventTime": now.UTC().Format("2006-01-02T15:04:05.000Z"),
		"s3": object{
			"s3SchemaVersion": "1.0", "bucket": object{"name": bucket, "arn": "arn:aws:s3:::" + bucket},
			"object": object{
				"key": strings.ReplaceAll(url.QueryEscape(key), "%2F", "/"), "size": is.size, "eTag": is.tag(),
				"sequencer": fmt.Sprintf("%016X", w.last),
			},
		},
	}}})
	if err == nil {
		err = w.send(ctx, string(body))
	}
	if err != nil {
		return fmt.Errorf("notify of %s: %w", name, err)
	}
	return nil
}

func sorted(files map[string]stamp) []string {
	return slices.Sorted(maps.Keys(files))
}
