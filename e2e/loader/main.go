// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
)

// event is what the loader reads of a line.
type event struct {
	Subject  string          `json:"subject"`
	Sequence string          `json:"sequence"`
	Data     json.RawMessage `json:"data"`
	version  int64
}

// target is the name of the index and of the table that lull writes to.
const target = "lull-content"

// form writes events until the channel is closed.
type form func(ctx context.Context, url string, workers int, events <-chan event) error

var forms = map[string]form{"external": external, "plain": plain, "upsert": upsert, "copy": insert}

func main() {
	file := flag.String("events", "", "the events, one in each line")
	url := flag.String("url", "", "the address of the engine")
	how := flag.String("form", "", "external, plain, upsert or copy")
	workers := flag.Int("workers", 2, "how many requests are under way at a time")
	flag.Parse()
	if err := load(context.Background(), *file, *url, forms[*how], *workers); err != nil {
		fmt.Fprintln(os.Stderr, "loader:", err)
		os.Exit(1)
	}
}

func load(ctx context.Context, file, url string, write form, workers int) error {
	if write == nil || url == "" || workers < 1 {
		return errors.New("usage: loader -events FILE -url URL -form external|plain|upsert|copy [-workers N]")
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, read := make(chan event, 1000), make(chan error, 1)
	go func() {
		defer close(events)
		read <- readEvents(ctx, in, events)
	}()
	if err := write(ctx, url, workers, events); err != nil {
		return err
	}
	return <-read
}

// readEvents sends the events of the lines to a channel.
func readEvents(ctx context.Context, in io.Reader, events chan<- event) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		err := json.Unmarshal(lines.Bytes(), &e)
		if err == nil {
			e.version, err = strconv.ParseInt(e.Sequence, 10, 64)
		}
		if err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		select {
		case events <- e:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return lines.Err()
}

// together runs the same work several times at once, and returns their errors. The first error ends
// the context of the others.
func together(ctx context.Context, workers int, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			if errs[i] = work(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
