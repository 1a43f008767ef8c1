package command

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/wholefile"
	"github.com/lullhq/lull/internal/shard"
)

// checkpoint is the file that stores the progress of a resync, a replay or a verification. An empty
// name stores nothing.
type checkpoint string

// read reads the progress of an earlier run into point, and reports whether the file exists.
func (c checkpoint) read(point any) (found bool, err error) {
	if c == "" {
		return false, nil
	}
	b, err := os.ReadFile(string(c))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the checkpoint: %w", err)
	}
	if err := json.Unmarshal(b, point); err != nil {
		return true, c.broken(err)
	}
	return true, nil
}

func (c checkpoint) broken(why error) error {
	return fmt.Errorf("checkpoint %s is broken (%w): remove it to begin anew", c, why)
}

// save stores a point, completely or not at all.
func (c checkpoint) save(point any) error {
	if c == "" {
		return nil
	}
	err := wholefile.Write(string(c), 0o600, func(f *os.File) error { return json.NewEncoder(f).Encode(point) })
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	return nil
}

// remove deletes the file, so that the next run starts from the beginning.
func (c checkpoint) remove() error {
	if c == "" {
		return nil
	}
	if err := os.Remove(string(c)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the checkpoint: %w", err)
	}
	return nil
}

// newRun returns the ULID of a new resync run.
func newRun() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() }

// resyncPoint is the progress of a resync. A resync that continues keeps its run.
type resyncPoint struct {
	Input string `json:"input"` // for people
	Run   string `json:"run"`

	// Where the run writes. To continue elsewhere would leave both places incomplete.
	Stack      string `json:"stack,omitempty"`
	Source     string `json:"source,omitempty"`
	Collection string `json:"collection,omitempty"`
	Sink       string `json:"sink,omitempty"`

	Sent   int    `json:"sent"`   // messages that are done, refused ones too
	Bytes  int64  `json:"bytes"`  // bytes of the input up to there
	Digest string `json:"digest"` // SHA-256 of those bytes, to notice another input under the same name
}

// openResync continues from a checkpoint, and reads the input up to that place. Without a
// checkpoint it creates one before anything is sent, because a second start would be a second run.
// It returns an error for a broken checkpoint, or for one of another input or place, and leaves the
// file unchanged.
func openResync(at checkpoint, in *resyncInput, want resyncPoint) (*resyncPoint, error) {
	var p resyncPoint
	switch found, err := at.read(&p); {
	case err != nil:
		return nil, err
	case !found:
		return beginResync(at, in, want)
	}
	if _, err := shard.ParseRun(p.Run); err != nil || p.Run == "" {
		return nil, at.broken(fmt.Errorf("run %q is not a ULID", p.Run))
	}
	if p.Sent < 0 || p.Bytes < 0 {
		return nil, at.broken(fmt.Errorf("%d messages, %d bytes", p.Sent, p.Bytes))
	}
	if err := p.fits(want); err != nil {
		return nil, fmt.Errorf("checkpoint %s %w: say the same, or remove it to begin anew", at, err)
	}
	return &p, in.goOn(at, p.Bytes, p.Sent, p.Digest)
}

// fits returns an error that names how a checkpoint differs from the resync that is wanted now.
func (p *resyncPoint) fits(want resyncPoint) error {
	if want.Run != "" && want.Run != p.Run {
		return fmt.Errorf("goes on with --run %s, not %s", p.Run, want.Run)
	}
	for _, f := range []struct{ flag, kept, want string }{
		{"collection", p.Collection, want.Collection}, {"sink", p.Sink, want.Sink}, {"source", p.Source, want.Source},
	} {
		if f.kept != f.want {
			return fmt.Errorf("goes on with --%s %s, not %s", f.flag, cmp.Or(f.kept, "none"), cmp.Or(f.want, "none"))
		}
	}
	if kept := operate.Shown(p.Stack); p.Stack != "" && kept != want.Stack {
		return fmt.Errorf("is of the stack %s, not %s", kept, cmp.Or(want.Stack, "none"))
	}
	return nil
}

func beginResync(at checkpoint, in *resyncInput, want resyncPoint) (*resyncPoint, error) {
	want.Run = cmp.Or(want.Run, newRun())
	if _, err := shard.ParseRun(want.Run); err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	want.Input, want.Digest = in.name, in.digest()
	return &want, at.save(want)
}
