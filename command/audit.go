// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"log/slog"

	"github.com/lullhq/lull/internal/seam/journal"
)

// audit writes a line of JSON to standard error for each change that an operator's command makes.
type audit struct{ log *slog.Logger }

func newAudit(w io.Writer) audit { return audit{slog.New(slog.NewJSONHandler(w, nil))} }

// Note writes a decision if it changed something. It never writes a body.
func (a audit) Note(n journal.Note) {
	switch n.Step {
	case journal.Redriven, journal.Dropped, journal.DeadLettered, journal.Launched, journal.Parked,
		journal.Raised, journal.Reasserted, journal.Reset, journal.Removed, journal.Copied,
		journal.Paused, journal.Resumed, journal.Rebuild, journal.Replayed, journal.Aborted:
	default:
		return
	}
	a.log.LogAttrs(context.Background(), slog.LevelInfo, string(n.Step), slog.Bool("audit", true),
		slog.String("sink", n.Sink), slog.String("key", string(n.Doc)),
		slog.String("order_key", n.Key.String()), slog.String("dead_letter", n.Letter), slog.String("flight", n.Flight),
		slog.String("message", n.Message), slog.String("detail", n.Detail))
}
