package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/local/wholefile"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// checkpoint is how far a resync has come. Its run stays the same when it goes on.
type checkpoint struct {
	Input string `json:"input"` // for people
	Run   string `json:"run"`
	// Where the run writes: to go on anywhere else would leave both places half done.
	Stack      string `json:"stack,omitempty"`
	Source     string `json:"source,omitempty"`
	Collection string `json:"collection,omitempty"`
	Sink       string `json:"sink,omitempty"`

	Sent   int    `json:"sent"`   // messages that are done, refused ones too
	Bytes  int64  `json:"bytes"`  // of the input, up to there
	Digest string `json:"digest"` // SHA-256 of those bytes: another input under the same name is noticed
}

// openCheckpoint goes on where a checkpoint says, and reads in up to there. Without a checkpoint it
// begins one before anything is sent, because a second beginning would be a second run. A broken
// checkpoint, or one of another input or place, changes nothing.
func openCheckpoint(path string, in *resyncInput, want checkpoint) (*checkpoint, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return beginCheckpoint(path, in, want)
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint: %w", err)
	}
	broken := func(why error) error {
		return fmt.Errorf("checkpoint %s is broken (%w): remove it to begin anew", path, why)
	}
	var cp checkpoint
	if err := json.Unmarshal(b, &cp); err != nil {
		return nil, broken(err)
	}
	if _, err := shard.ParseRun(cp.Run); err != nil || cp.Run == "" {
		return nil, broken(fmt.Errorf("run %q is not a ULID", cp.Run))
	}
	if cp.Sent < 0 || cp.Bytes < 0 {
		return nil, broken(fmt.Errorf("%d messages, %d bytes", cp.Sent, cp.Bytes))
	}
	if err := cp.fits(want); err != nil {
		return nil, fmt.Errorf("checkpoint %s %w: say the same, or remove it to begin anew", path, err)
	}
	sent, err := in.skip(cp.Bytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("go on from checkpoint %s: %w", path, err)
	}
	if in.read != cp.Bytes || sent != cp.Sent || in.digest() != cp.Digest {
		return nil, fmt.Errorf("checkpoint %s is of another input: remove it to begin anew", path)
	}
	return &cp, nil
}

// fits says what differs between a checkpoint and what is wanted now.
func (c *checkpoint) fits(want checkpoint) error {
	named := func(s string) string { return cmp.Or(s, "none") }
	switch {
	case want.Run != "" && want.Run != c.Run:
		return fmt.Errorf("goes on with --run %s, not %s", c.Run, want.Run)
	case want.Collection != c.Collection:
		return fmt.Errorf("goes on with --collection %s, not %s", named(c.Collection), named(want.Collection))
	case want.Sink != c.Sink:
		return fmt.Errorf("goes on with --sink %s, not %s", named(c.Sink), named(want.Sink))
	case want.Source != c.Source:
		return fmt.Errorf("goes on with --source %s, not %s", named(c.Source), named(want.Source))
	case want.Stack != operate.Shown(c.Stack) && c.Stack != "":
		return fmt.Errorf("is of the stack %s, not %s", operate.Shown(c.Stack), named(want.Stack))
	}
	return nil
}

func beginCheckpoint(path string, in *resyncInput, want checkpoint) (*checkpoint, error) {
	if want.Run == "" {
		want.Run = ulid.MustNew(ulid.Now(), rand.Reader).String()
	}
	if _, err := shard.ParseRun(want.Run); err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	want.Input, want.Digest = in.name, in.digest()
	return &want, want.save(path)
}

// reach saves that everything read so far is done.
func (c *checkpoint) reach(path string, sent int, in *resyncInput) error {
	c.Sent, c.Bytes, c.Digest = sent, in.read, in.digest()
	return c.save(path)
}

func (c *checkpoint) save(path string) error {
	err := wholefile.Write(path, 0o600, func(f *os.File) error { return json.NewEncoder(f).Encode(c) })
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	return nil
}
