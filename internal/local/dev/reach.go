package dev

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/sink"
)

// firstPing and lastPing bound the wait between two pings of a sink that does not answer.
const (
	firstPing = 100 * time.Millisecond
	lastPing  = 10 * time.Second
)

// Reach pings a sink, each time for up to patience. It pings again while the error is sink.ErrAway,
// and calls tell with each new reason. It returns every other error at once.
func Reach(ctx context.Context, clk clock.Clock, s sink.Sink, patience time.Duration, tell func(why error)) error {
	said := ""
	for pause := firstPing; ; pause = min(2*pause, lastPing) {
		err := ping(ctx, clk, s, patience)
		if !errors.Is(err, sink.ErrAway) {
			return err
		}
		if text := err.Error(); text != said {
			said = text
			tell(err)
		}
		if clk.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

func ping(ctx context.Context, clk clock.Clock, s sink.Sink, patience time.Duration) error {
	ctx, cancel := clk.Deadline(ctx, patience)
	defer cancel()
	return s.Ping(ctx)
}
