// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// domainTakes is the longest time that AWS may take to make a domain.
const domainTakes = 45 * time.Minute

// engine finds the search engine, or makes a small domain that trusts the roles of the account.
func (r *runner) engine(ctx context.Context) (string, error) {
	switch {
	case r.search != "":
		r.state.Search = r.search
	case r.backend != onAWS:
		r.state.Search = os.Getenv("OPENSEARCH_URL")
	default:
		r.state.Domain = true
		if err := r.save(); err != nil { // before the request, so that -clean finds the domain
			return "", err
		}
		address, err := r.makeDomain(ctx)
		if err != nil {
			return "", err
		}
		r.state.Search = address
	}
	r.g.SearchAt(r.state.Search)
	return "", nil
}

// foundDomain says in the state whether an earlier run made a domain of the stack's name, or which
// engine its operator named.
func (r *runner) foundDomain(ctx context.Context) (err error) {
	if r.state.Search = r.search; r.backend == onAWS && r.search == "" {
		r.state.Domain, err = r.g.OwnDomain(ctx, r.stack)
	}
	return err
}

// makeDomain makes a domain of the stack's name, unless there is one, and waits until it can be
// reached.
func (r *runner) makeDomain(ctx context.Context) (address string, err error) {
	if _, found, err := r.g.Domain(ctx, r.stack); err != nil {
		return "", err
	} else if !found {
		if err := r.g.MakeDomain(ctx, r.stack); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, domainTakes)
	defer cancel()
	for {
		address, _, err := r.g.Domain(ctx, r.stack)
		if err != nil {
			return "", fmt.Errorf("wait for the domain %s: %w", r.stack, err)
		}
		if address != "" {
			return "https://" + address, nil
		}
		select {
		case <-time.After(15 * time.Second):
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the domain %s: %w", r.stack, ctx.Err())
		}
	}
}
