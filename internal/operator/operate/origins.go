// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/source"
)

// Origin is where the documents of a source are fetched from.
type Origin struct {
	Source    string `json:"source"`
	Host      string `json:"host"`                // or the bucket
	Problem   string `json:"problem,omitempty"`   // empty if the host accepts a connection
	Unchecked string `json:"unchecked,omitempty"` // why lull did not try to connect; empty if it did
}

// origins connects to the hosts that documents are fetched from.
type origins struct {
	layout

	Connect func(ctx context.Context, f source.Fetch) error // nil if this program cannot reach the hosts
	Off     time.Duration                                   // 0 in the stack's own process
}

// Origins connects to the hosts that documents are fetched from. If only the function index can
// reach a host, a program on another machine does not try to connect.
func (o *origins) Origins(ctx context.Context) ([]Origin, error) {
	all := []Origin{}
	for _, name := range slices.Sorted(maps.Keys(o.Config.Sources)) {
		f := o.Config.Sources[name].Fetch
		if f == nil {
			continue
		}
		from := Origin{Source: name, Host: f.Host()}
		switch bucket, _, inS3 := f.Bucket(); {
		case inS3:
			from.Host, from.Unchecked = bucket, "index reads the bucket with rights of its own"
		case o.Connect == nil:
			from.Unchecked = "no host is asked from here"
		case o.Off > 0 && f.Private():
			from.Unchecked = "the host is private, and only index may reach it"
		default:
			if err := o.Connect(ctx, *f); err != nil {
				from.Problem = err.Error()
			}
		}
		all = append(all, from)
	}
	return all, nil
}
