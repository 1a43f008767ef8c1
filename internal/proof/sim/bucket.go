package sim

import (
	"context"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/local/fault"
	"github.com/lullhq/lull/internal/schedule"
)

// flightClient, letterClient and scheduleClient are the bucket, and the tables beside it, as one
// invocation reaches them. The halves in memory get a context of their own: a request that was sent
// is carried out.
type (
	flightClient   struct{ v *invocation }
	letterClient   struct{ v *invocation }
	scheduleClient struct{ v *invocation }
)

var (
	_ flight.Store     = flightClient{}
	_ deadletter.Store = letterClient{}
	_ schedule.Store   = scheduleClient{}

	background = context.Background()
)

func (c flightClient) Put(ctx context.Context, m *flight.Manifest) error {
	copied := *m // the caller goes on, the request is on its way
	return c.v.ask(ctx, fault.Bucket, func() error {
		c.v.w.counts.put()
		return c.v.w.flights.Put(background, &copied)
	})
}

func (c flightClient) Get(ctx context.Context, id flight.ID) (m *flight.Manifest, err error) {
	err = c.v.ask(ctx, fault.Bucket, func() (err error) {
		c.v.w.counts.got()
		m, err = c.v.w.flights.Get(background, id)
		return err
	})
	return m, err
}

func (c flightClient) Continue(ctx context.Context, id flight.ID, n int, s flight.State) (created bool, err error) {
	s.Left = s.Left.Clone()
	err = c.v.ask(ctx, fault.Bucket, func() (err error) {
		c.v.w.counts.put()
		created, err = c.v.w.flights.Continue(background, id, n, s)
		return err
	})
	return created, err
}

func (c flightClient) Delete(ctx context.Context, id flight.ID) error {
	return c.v.ask(ctx, fault.Bucket, func() error { return c.v.w.flights.Delete(background, id) })
}

func (c flightClient) List(ctx context.Context, cursor string, limit int) (list []flight.Stored, next string,
	err error,
) {
	err = c.v.ask(ctx, fault.Bucket, func() (err error) {
		list, next, err = c.v.w.flights.List(background, cursor, limit)
		return err
	})
	return list, next, err
}

func (c letterClient) Park(ctx context.Context, l deadletter.Letter) (fresh bool, err error) {
	err = c.v.ask(ctx, fault.Bucket, func() (err error) {
		if fresh, err = c.v.w.letters.Park(background, l); err == nil {
			c.v.w.oracle.parked(l.Facts, fresh)
		}
		return err
	})
	return fresh, err
}

func (c letterClient) Get(ctx context.Context, id string) (l deadletter.Letter, ok bool, err error) {
	err = c.v.ask(ctx, fault.Bucket, func() (err error) {
		l, ok, err = c.v.w.letters.Get(background, id)
		return err
	})
	return l, ok, err
}

func (c letterClient) List(ctx context.Context, f deadletter.Filter, cursor string, limit int) (list []deadletter.Facts,
	next string, err error,
) {
	err = c.v.ask(ctx, fault.Table, func() (err error) {
		list, next, err = c.v.w.letters.List(background, f, cursor, limit)
		return err
	})
	return list, next, err
}

func (c letterClient) MarkRedriven(ctx context.Context, id string, at time.Time, auto bool) error {
	return c.v.ask(ctx, fault.Table, func() error { return c.v.w.letters.MarkRedriven(background, id, at, auto) })
}

func (c letterClient) Drop(ctx context.Context, id string) error {
	return c.v.ask(ctx, fault.Table, func() error {
		l, there, err := c.v.w.letters.Get(background, id)
		if err != nil || !there {
			return err
		}
		err = c.v.w.letters.Drop(background, id)
		c.v.w.oracle.dropped(l.Facts)
		return err
	})
}

func (c scheduleClient) Put(ctx context.Context, it schedule.Item) error {
	return c.v.ask(ctx, fault.Bucket, func() error {
		err := c.v.w.schedule.Put(background, it)
		c.v.w.oracle.scheduled(it)
		return err
	})
}

func (c scheduleClient) Due(ctx context.Context, until time.Time, cursor string, limit int) (items []schedule.Item,
	next string, err error,
) {
	err = c.v.ask(ctx, fault.Table, func() (err error) {
		items, next, err = c.v.w.schedule.Due(background, until, cursor, limit)
		return err
	})
	return items, next, err
}

func (c scheduleClient) Delete(ctx context.Context, id string) error {
	return c.v.ask(ctx, fault.Table, func() error {
		err := c.v.w.schedule.Delete(background, id)
		c.v.w.oracle.unscheduled(id)
		return err
	})
}
