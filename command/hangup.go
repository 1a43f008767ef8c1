// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"

	"github.com/lullhq/lull/internal/terminal"
)

// untilHungUp ends the context when the reader of standard output has ended, as in `lull dev |
// head`. Without this, the signal SIGPIPE would end the process like a kill, without a report, and
// would leave the temporary folder.
func (std *streams) untilHungUp(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	if f, ok := terminal.File(std.out); ok {
		signal.Ignore(syscall.SIGPIPE)
		std.out = terminal.NewWriter(hangUp{f, stop})
	}
	return ctx, stop
}

type hangUp struct {
	to   io.Writer
	stop func()
}

func (h hangUp) Write(p []byte) (int, error) {
	n, err := h.to.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		h.stop()
	}
	return n, err
}
