package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"
	"github.com/tidwall/sjson"

	"github.com/lullhq/lull/internal/dev"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// checkpoint is how far a resync has come. Its run stays the same when it goes on.
type checkpoint struct {
	File   string `json:"file"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"` // of the first 64 KB: another file under the same name is noticed
	Run    string `json:"run"`
	Sent   int    `json:"sent"`
}

func resyncCommand(t *target) *cobra.Command {
	var rate float64
	var at, run, collection string
	c := t.verb(&cobra.Command{
		Use: "resync FILE", Short: "Publish a whole collection again, in the bulk lane",
		Long: "Publishes a file of native events (NDJSON) to the bulk lane with mode resync and one resync run: an equal version is accepted once\n" +
			"per run, an older one never. Interrupted, it goes on from its checkpoint with the same run.",
		Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command, api operate.API, args []string) error {
		if rate <= 0 {
			return usage(fmt.Errorf("--rate %g: want messages a second, above 0", rate))
		}
		if at == "" {
			at = args[0] + ".checkpoint"
		}
		cp, err := openCheckpoint(at, args[0], run)
		if err != nil {
			return usage(err)
		}
		f, err := os.Open(args[0])
		if err != nil {
			return usage(fmt.Errorf("open events: %w", err))
		}
		in := &resyncInput{Closer: f, in: bufio.NewReaderSize(f, 1<<20), run: cp.Run, collection: collection}
		defer in.Close()
		began, bar := time.Now(), progress{out: c.ErrOrStderr(), size: cp.Size}
		first := cp.Sent
		total, err := publishAll(c.Context(), api, in, "", flight.Bulk, cp.Sent, func(sent int) error {
			cp.Sent = sent
			if err := cp.save(at); err != nil {
				return err
			}
			bar.show(sent, in.read)
			return pace(c.Context(), began, sent-first, rate)
		})
		bar.end()
		for _, r := range total.Refused {
			fmt.Fprintf(c.ErrOrStderr(), "refused: line %d: %s\n", r.Message+1, r.Why)
		}
		if err != nil {
			return fmt.Errorf("%w; run the same command again to go on", err)
		}
		if err := os.Remove(at); err != nil {
			return fmt.Errorf("remove the checkpoint: %w", err)
		}
		if err := t.print(c, total, func(w io.Writer) {
			fmt.Fprintf(w, "%d messages sent in resync run %s, %d refused\n", total.Messages, cp.Run, len(total.Refused))
		}); err != nil || len(total.Refused) == 0 {
			return err
		}
		return &exitError{exitFailed, nil}
	})
	c.Flags().Float64Var(&rate, "rate", 200, "messages a second")
	c.Flags().StringVar(&at, "checkpoint", "", "file that keeps how far it came; without it FILE.checkpoint")
	c.Flags().StringVar(&run, "run", "", "resync run, a ULID; without it a new one")
	c.Flags().StringVar(&collection, "collection", "", "write to this collection instead: rebuild beside live traffic, then switch")
	return c
}

// pace waits until n messages at the rate would have taken this long.
func pace(ctx context.Context, began time.Time, n int, rate float64) error {
	wait := time.Until(began.Add(time.Duration(float64(n) / rate * float64(time.Second))))
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// openCheckpoint reads a checkpoint, or begins one. A broken one, or one of another file, changes nothing.
func openCheckpoint(path, file, run string) (*checkpoint, error) {
	now, err := describe(file)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if now.Run = run; run == "" {
			now.Run = ulid.MustNew(ulid.Now(), rand.Reader).String()
		}
		if _, err := shard.ParseRun(now.Run); err != nil {
			return nil, fmt.Errorf("--run: %w", err)
		}
		return now, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint: %w", err)
	}
	var cp checkpoint
	if err := json.Unmarshal(b, &cp); err != nil {
		return nil, fmt.Errorf("checkpoint %s is broken (%w): remove it to begin anew", path, err)
	}
	if cp.Size != now.Size || cp.Digest != now.Digest {
		return nil, fmt.Errorf("checkpoint %s is of another file: remove it to begin anew", path)
	}
	if _, err := shard.ParseRun(cp.Run); err != nil || cp.Sent < 0 {
		return nil, fmt.Errorf("checkpoint %s is broken: remove it to begin anew", path)
	}
	if run != "" && run != cp.Run {
		return nil, fmt.Errorf("--run %s: checkpoint %s goes on with run %s", run, path, cp.Run)
	}
	return &cp, nil
}

func describe(file string) (*checkpoint, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open events: %w", err)
	}
	h := sha256.New()
	if _, err := io.CopyN(h, f, 64<<10); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return &checkpoint{File: filepath.Base(file), Size: info.Size(), Digest: hex.EncodeToString(h.Sum(nil)[:8])}, nil
}

func (c *checkpoint) save(path string) error {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	return nil
}

// resyncInput turns native events into events of a resync run.
type resyncInput struct {
	io.Closer
	in         *bufio.Reader
	run        string
	collection string
	read       int64 // bytes
}

func (r *resyncInput) Next() (dev.Timed, error) {
	for {
		line, err := r.in.ReadString('\n')
		r.read += int64(len(line))
		if line = strings.TrimSpace(line); line == "" {
			if err != nil {
				return dev.Timed{}, err
			}
			continue
		}
		t, parsed := dev.ParseLine([]byte(line))
		if parsed != nil {
			return t, parsed
		}
		for _, set := range [][2]string{{"mode", "resync"}, {"resyncrun", r.run}, {"collection", r.collection}} {
			if set[1] == "" {
				continue
			}
			if body, err := sjson.Set(t.Body, set[0], set[1]); err == nil {
				t.Body = body // what is no object is refused when it is published
			}
		}
		return t, nil
	}
}

// progress is a bar on standard error.
type progress struct {
	out   io.Writer
	size  int64
	shown bool
}

func (p *progress) show(sent int, read int64) {
	const width = 30
	part := 1.0
	if p.size > 0 {
		part = min(float64(read)/float64(p.size), 1)
	}
	full := int(part * width)
	fmt.Fprintf(p.out, "\r[%s%s] %3.0f%%  %d messages", strings.Repeat("=", full), strings.Repeat(" ", width-full), part*100, sent)
	p.shown = true
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprintln(p.out)
	}
}
