package deadletter

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/queue"
)

// Copy is a message to send again: the same body and attributes, and in AttrFirstSent when the
// first of its copies was sent. Without that mark a copy would pass for new. Where SQS's limits
// leave no room for it (ten attributes, 1 MiB), the error is queue.ErrTooLarge, and the upstream
// has to publish again. The delay is rounded up to whole seconds.
func Copy(body string, attrs map[string]queue.Attribute, firstSent time.Time, delay time.Duration) (queue.Outgoing,
	error,
) {
	out := queue.Outgoing{Body: body, Attributes: queue.With(attrs, queue.AttrFirstSent, queue.FirstSent(firstSent))}
	delete(out.Attributes, AttrLetter)
	if n := len(out.Attributes); n > queue.MaxAttributes {
		return queue.Outgoing{}, fmt.Errorf("copy with %s has %d attributes: %w", queue.AttrFirstSent, n,
			queue.ErrTooLarge)
	}
	if n := queue.Bytes(out.Body, out.Attributes); n > queue.MaxBytes {
		return queue.Outgoing{}, fmt.Errorf("copy with %s has %d bytes: %w", queue.AttrFirstSent, n, queue.ErrTooLarge)
	}
	out.Delay = max(queue.WholeSeconds(delay), 0)
	return out, nil
}

// Copy is the dead letter as a message to send again.
func (l Letter) Copy(delay time.Duration) (queue.Outgoing, error) {
	return Copy(l.Body, l.Attributes, l.FirstSent, delay)
}
