// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/sink"
)

// firstPing and lastPing are the shortest and the longest wait between two pings of an unavailable
// sink.
const (
	firstPing = 100 * time.Millisecond
	lastPing  = 10 * time.Second
)

// Reach pings a sink, with patience as the time-out of each ping. While the error is sink.ErrAway,
// Reach pings again, and calls tell when the error's text changes. Reach returns any other error at
// once, and nil if the ping succeeds.
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
