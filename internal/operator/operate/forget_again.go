package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// Patience says how long lull repeats the order while something of the document ends without an
// operator.
type Patience struct {
	Clock clock.Clock
	Most  time.Duration // from the first answer; zero asks once
	// Waiting is called before each wait with the number of things that lull waits for; may be nil.
	Waiting func(things int)
}

// The wait between two tries begins with the first and doubles up to the second.
const (
	firstForgetWait = time.Second
	maxForgetWait   = 15 * time.Second
)

// ForgetAndWait forgets a document, and repeats that until nothing is left to wait for or p.Most
// has passed. The counts cover all tries.
func ForgetAndWait(ctx context.Context, api API, o ForgetOrder, p Patience) (Forgotten, error) {
	done, err := api.Forget(ctx, o)
	began, wait := p.Clock.Now(), firstForgetWait
	for err == nil && done.Waits > 0 {
		left := p.Most - p.Clock.Now().Sub(began)
		if left <= 0 {
			break
		}
		if p.Waiting != nil {
			p.Waiting(done.Waits)
		}
		if err = p.Clock.Sleep(ctx, min(wait, left)); err != nil {
			break
		}
		before := done
		if done, err = api.Forget(ctx, o); err == nil {
			done = done.After(before)
		}
		wait = min(2*wait, maxForgetWait)
	}
	return done, err
}

// ForgetGroup forgets the documents of a message group, one after the other. If something remains
// of a document, the others are still forgotten. The document is then forgotten a second time,
// because the rest may have disappeared with another document of the group. tell is called once for
// each document, with an error if lull refuses to forget it.
//
// It returns how much remains: documents, and the messages in left that belong to no document or
// cannot be read.
func ForgetGroup(ctx context.Context, api API, group string, o ForgetOrder, p Patience,
	tell func(shard.DocID, Forgotten, error) error,
) (remain int, left GroupPage, err error) {
	all, err := Group(ctx, api, group)
	if err != nil {
		return 0, all, err
	}
	earlier := map[shard.DocID]Forgotten{} // documents of which something remained
	forget := func(key shard.DocID, second bool) error {
		if o.Key = key; second {
			p.Most = 0 // the first round has waited already
		}
		done, err := ForgetAndWait(ctx, api, o, p)
		done = done.After(earlier[key])
		switch {
		case errors.Is(err, ErrNotFound): // it disappeared with an earlier document of the group
			return nil
		case err == nil && done.Remaining > 0 && !second:
			earlier[key] = done
			return nil
		case errors.Is(err, ErrInput), err == nil && done.Remaining > 0:
			remain++
		case err != nil:
			return fmt.Errorf("forget %s of group %s: %w", key, group, err)
		}
		return tell(key, done, err)
	}
	for _, second := range []bool{false, true} {
		for _, key := range all.Keys {
			if _, remained := earlier[key]; second && !remained {
				continue
			}
			if err := forget(key, second); err != nil {
				return remain, all, err
			}
		}
	}
	if len(all.Letters)+all.Unread.Found > 0 { // they may be gone with the documents
		if left, err = api.InGroup(ctx, GroupQuery{Group: group}); err != nil {
			return remain, all, fmt.Errorf("ask for what remains of group %s: %w", group, err)
		}
	}
	return remain + len(left.Letters) + left.Unread.Found, left, nil
}
