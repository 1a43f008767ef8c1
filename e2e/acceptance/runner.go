// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

// runner runs the steps in their order, and stores which of them are done.
type runner struct {
	options
	g     *ground.Ground
	s     *ground.Stack // nil until it is deployed
	out   io.Writer
	file  string
	state state
	plan  []step
}

// state is what a run stores after each step, as JSON.
type state struct {
	Account string    `json:"account"`
	Region  string    `json:"region"`
	Begun   time.Time `json:"begun_at"`
	Steps   []done    `json:"steps"`
	Search  string    `json:"search,omitempty"`  // the address of the search engine
	Domain  bool      `json:"domain,omitempty"`  // this run made the domain
	Dollars float64   `json:"dollars,omitempty"` // the estimate
	Tests   []string  `json:"tests,omitempty"`   // the lines with the results of the tests
	Load    *figures  `json:"load,omitempty"`
	// Killing is how a function was before the run pointed its alias to a version that is killed.
	Killing *ground.Former `json:"killing,omitempty"`
	Left    []string       `json:"left,omitempty"` // what was not removed, and why
	// Resources are those of the stack when its removal began.
	Resources []resource `json:"resources,omitempty"`
}

// done is a step that is done.
type done struct {
	Name    string `json:"name"`
	Seconds int    `json:"seconds"`
	Skipped string `json:"skipped,omitempty"` // why the backend cannot run the step
}

// step is a part of the run. Each may be repeated.
type step struct {
	name string
	do   func(context.Context) (skipped string, err error)
}

func (r *runner) steps() []step {
	return []step{
		{"cdk bootstrap", r.bootstrap},
		{"search engine", r.engine},
		{"deploy", r.deploy},
		{"doctor", r.doctor},
		{"end-to-end tests", r.test},
		{"load, kills, deploy and rollback", r.disturbedLoad},
		{"destroy", r.destroy},
	}
}

// begin reads the state of an earlier run, checks the account, and prints what the run will do.
func (r *runner) begin(ctx context.Context) error {
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	if r.state.Begun.IsZero() {
		r.state = state{Account: r.g.AccountID, Region: r.g.Account.Region, Begun: time.Now().UTC()}
		var err error
		if r.clean {
			// The file that says what the run made is lost.
			err = errors.Join(r.foundDomain(ctx), r.deployedHere(ctx))
		} else {
			err = r.unused(ctx)
		}
		if err != nil {
			return err
		}
	}
	if r.state.Account != r.g.AccountID || r.state.Region != r.g.Account.Region {
		return fmt.Errorf("%s is of a run in account %s, region %s: use that account and region, or delete the file",
			r.file, r.state.Account, r.state.Region)
	}
	if r.state.Search != "" {
		r.g.SearchAt(r.state.Search)
	}
	if r.clean {
		fmt.Fprintf(r.out, "It removes the stack %s and everything beside it from account %s, region %s.\n",
			r.deployedName(), r.g.AccountID, r.g.Account.Region)
		return nil
	}
	return r.announce(ctx)
}

// load reads the state of an earlier run, if there was one.
func (r *runner) load() error {
	text, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r.state)
	}
	return err
}

// perform runs the steps that are not done yet.
func (r *runner) perform(ctx context.Context) error {
	for _, s := range r.plan {
		if i := slices.IndexFunc(r.state.Steps, func(d done) bool { return d.Name == s.name }); i >= 0 {
			fmt.Fprintf(r.out, "%-34s done before, in %d s\n", s.name, r.state.Steps[i].Seconds)
			continue
		}
		began := time.Now()
		fmt.Fprintf(r.out, "%-34s ...\n", s.name)
		skipped, err := s.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		d := done{s.name, int(time.Since(began).Seconds()), skipped}
		r.state.Steps = append(r.state.Steps, d)
		if err := r.save(); err != nil {
			return err
		}
		if skipped != "" {
			fmt.Fprintf(r.out, "%-34s left out: %s\n", s.name, skipped)
			continue
		}
		fmt.Fprintf(r.out, "%-34s ok, %d s\n", s.name, d.Seconds)
	}
	return r.finish()
}

func (r *runner) save() error {
	text, err := json.MarshalIndent(r.state, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.file, append(text, '\n'), 0o600)
}

// finish writes the page, and forgets the run.
func (r *runner) finish() error {
	text := r.state.page(r.options, r.commit())
	fmt.Fprint(r.out, "\n", text)
	if r.page != "" {
		if err := os.WriteFile(r.page, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.Remove(r.file)
}

// remove removes everything that a run made, and forgets the run.
func (r *runner) remove(ctx context.Context) error {
	if _, err := r.destroy(ctx); err != nil {
		return err
	}
	for _, left := range r.state.Left {
		fmt.Fprintln(r.out, "left:", left)
	}
	if err := os.Remove(r.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
