// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
)

// Copy returns a message to send again, with the same body and attributes. AttrFirstSent holds when
// the first of the copies was sent: without this attribute a copy would look new. The error is
// queue.ErrTooLarge if SQS's limits (ten attributes, 1 MiB) leave no space for the attribute. Then
// the upstream has to publish again. The delay is rounded up to whole seconds.
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

// Copy returns the dead letter as a message to send again.
func (l Letter) Copy(delay time.Duration) (queue.Outgoing, error) {
	return Copy(l.Body, l.Attributes, l.FirstSent, delay)
}
