// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"net/http"
	"reflect"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/shard"
)

// operation is a function of [API] that can be called over HTTP.
type operation interface {
	// handler returns a handler that answers requests by calling the function.
	handler() http.HandlerFunc
	// dial replaces the function by one that sends requests with this name to c.
	dial(c *Client, name string)
}

// each calls f with the name and the function of every operation.
func (api *API) each(f func(name string, o operation)) {
	v := reflect.ValueOf(api).Elem()
	for i := range v.NumField() {
		if o, ok := v.Field(i).Addr().Interface().(operation); ok {
			f(v.Type().Field(i).Tag.Get("wire"), o)
		}
	}
}

// Operation is an operation with a question of type Q and an answer of type A. Q is a JSON object.
type Operation[Q, A any] func(ctx context.Context, q Q) (A, error)

func (f *Operation[Q, A]) handler() http.HandlerFunc { return route(*f) }

func (f *Operation[Q, A]) dial(c *Client, name string) {
	*f = func(ctx context.Context, q Q) (A, error) { return ask[Q, A](ctx, c, name, q) }
}

// Question is an operation without parameters.
type Question[A any] func(ctx context.Context) (A, error)

func (f *Question[A]) handler() http.HandlerFunc {
	return route(func(ctx context.Context, _ struct{}) (A, error) { return (*f)(ctx) })
}

func (f *Question[A]) dial(c *Client, name string) {
	*f = func(ctx context.Context) (A, error) { return ask[struct{}, A](ctx, c, name, struct{}{}) }
}

// Order is an operation without an answer.
type Order[Q any] func(ctx context.Context, q Q) error

func (f *Order[Q]) handler() http.HandlerFunc {
	return route(func(ctx context.Context, q Q) (struct{}, error) { return struct{}{}, (*f)(ctx, q) })
}

func (f *Order[Q]) dial(c *Client, name string) {
	*f = func(ctx context.Context, q Q) error {
		_, err := ask[Q, struct{}](ctx, c, name, q)
		return err
	}
}

// ByKey is a question about one document.
type ByKey[A any] func(ctx context.Context, key shard.DocID) (A, error)

type byKey struct {
	Key shard.DocID `json:"key"`
}

func (f *ByKey[A]) handler() http.HandlerFunc {
	return route(func(ctx context.Context, q byKey) (A, error) { return (*f)(ctx, q.Key) })
}

func (f *ByKey[A]) dial(c *Client, name string) {
	*f = func(ctx context.Context, key shard.DocID) (A, error) { return ask[byKey, A](ctx, c, name, byKey{key}) }
}

// ByID is an operation on the thing that has an id.
type ByID[I ~string, A any] func(ctx context.Context, id I) (A, error)

type byID[I ~string] struct {
	ID I `json:"id"`
}

func (f *ByID[I, A]) handler() http.HandlerFunc {
	return route(func(ctx context.Context, q byID[I]) (A, error) { return (*f)(ctx, q.ID) })
}

func (f *ByID[I, A]) dial(c *Client, name string) {
	*f = func(ctx context.Context, id I) (A, error) { return ask[byID[I], A](ctx, c, name, byID[I]{id}) }
}

// JobStore returns the operations that keep the state of a job.
func (api *API) JobStore() job.Store { return jobStore{api} }

type jobStore struct{ api *API }

func (s jobStore) TakeJob(ctx context.Context, c job.Claim) (job.Lease, error) {
	return s.api.TakeJob(ctx, c)
}
func (s jobStore) SaveJob(ctx context.Context, l job.Lease) error { return s.api.SaveJob(ctx, l) }
func (s jobStore) EndJob(ctx context.Context, l job.Lease) error  { return s.api.EndJob(ctx, l) }
