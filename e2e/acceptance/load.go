// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
)

// figures are what the load measured.
type figures struct {
	Versions  int            `json:"versions"` // sent, without duplicates and late versions
	Documents int            `json:"documents"`
	PerSecond int            `json:"per_second"`
	Seconds   int            `json:"seconds"`
	Writes    int            `json:"writes"`
	Killed    map[string]int `json:"killed"`    // function -> invocations that were killed
	TimedOut  int            `json:"timed_out"` // of them, killed by their timeout
	Deploys   int            `json:"deploys"`   // deploys and rollbacks under load
	P50       time.Duration  `json:"p50_ns"`    // from sent to committed
	P99       time.Duration  `json:"p99_ns"`
	Max       time.Duration  `json:"max_ns"`
}

// never are the counts that must not grow, whatever is killed.
var never = []string{"SinkNewer", "Rejected", "Panics", "ConfigurationErrors", "UnknownSchema", "InvalidEvents", "Parked"}

// kills are the functions that are killed under load, in this order.
func kills() []names.Function {
	return []names.Function{names.Receive, names.Index, names.Prune, names.DLQ}
}

// disturbedLoad sends a load in bursts of five. In the meantime it kills each function, deploys
// other settings, and deploys the former settings again. At the end it compares the sink with the
// versions that were sent.
func (r *runner) disturbedLoad(ctx context.Context) (string, error) {
	if err := r.known(ctx); err != nil {
		return "", err
	}
	if err := r.restore(ctx); err != nil {
		return "", err
	}
	before, err := r.s.ReadCounts(ctx)
	if err != nil {
		return "", err
	}
	collection, began := r.s.Collection("acceptance"), time.Now()
	l := r.s.Load(ctx, collection, ground.LoadRate{Documents: 10 * r.rate, PerSecond: r.rate, Burst: 5})
	f := &figures{Killed: make(map[string]int), PerSecond: r.rate}
	err = r.disturb(ctx, f)
	if err == nil {
		err = sleep(ctx, time.Until(began.Add(r.length)))
	}
	newest, sent, faults := l.Stop()
	if err != nil {
		return "", err
	}
	f.Versions, f.Documents, f.Seconds = sent, len(newest), int(time.Since(began).Seconds())
	if err := r.compare(ctx, l, collection, newest); err != nil {
		return "", errors.Join(err, errors.New(strings.Join(faults, "\n")))
	}
	after, err := r.s.ReadCounts(ctx)
	if err != nil {
		return "", err
	}
	grown := after.Since(before)
	for _, name := range never {
		if grown[name] != 0 {
			faults = append(faults, fmt.Sprintf("%s: %d, want 0", name, grown[name]))
		}
	}
	if len(faults) > 0 {
		return "", errors.New(strings.Join(faults, "\n"))
	}
	f.TimedOut = grown[ground.TimedOut]
	f.measure(r.s.Decisions, collection)
	if f.Writes == 0 {
		return "", errors.New("the functions' logs have no commit of the load")
	}
	r.state.Load = f
	return "", r.command(ctx, "index", "check", collection)
}

// disturb kills each function, and deploys and rolls back, in equal parts of the load's time.
func (r *runner) disturb(ctx context.Context, f *figures) error {
	part := r.length / 10
	for _, function := range kills() {
		if err := sleep(ctx, part/2); err != nil {
			return err
		}
		fmt.Fprintf(r.out, "  kill %s\n", function)
		killed, err := r.kill(ctx, function, min(part, 30*time.Second))
		if err != nil {
			return fmt.Errorf("kill %s: %w", function, err)
		}
		f.Killed[string(function)] += killed
	}
	if r.backend == onLocalStack {
		return nil // it cannot change a stack
	}
	changed := r.settings()
	changed.Quiet = 5 * time.Second
	fmt.Fprintln(r.out, "  deploy under load")
	if err := r.redeployed(ctx, changed); err != nil {
		return fmt.Errorf("deploy under load: %w", err)
	}
	fmt.Fprintln(r.out, "  roll back under load")
	if err := r.redeployed(ctx, r.settings()); err != nil {
		return fmt.Errorf("roll back under load: %w", err)
	}
	f.Deploys = 2
	return nil
}

// redeployed deploys other settings over the stack. The stack of the load stays the same value,
// because that value has read the logs.
func (r *runner) redeployed(ctx context.Context, settings ground.Settings) error {
	was := r.s
	err := r.deployed(ctx, settings)
	r.s = was
	return err
}

// kill kills invocations of a function for some time. On LocalStack it also kills processes, whose
// number it returns.
func (r *runner) kill(ctx context.Context, f names.Function, length time.Duration) (killed int, err error) {
	if r.backend == onLocalStack {
		for end := time.Now().Add(length); time.Now().Before(end) && killed < 3; {
			n, err := r.g.KillProcesses(ctx, r.s.Names.Function(ground.Sink, f))
			if killed += n; err != nil {
				return killed, err
			}
			if err := sleep(ctx, 200*time.Millisecond); err != nil {
				return killed, err
			}
		}
	}
	was, err := r.s.Former(ctx, f)
	if err != nil {
		return killed, err
	}
	r.state.Killing = &was
	if err := r.save(); err != nil { // before the change, so that the next run can restore the function
		return killed, err
	}
	if err := r.s.KillForAWhile(ctx, was, length); err != nil {
		return killed, err
	}
	r.state.Killing = nil
	return killed, r.save()
}

// restore restores the function that a run was killing when it ended. CloudFormation would not: it
// does not see that the function has changed.
func (r *runner) restore(ctx context.Context) error {
	if r.state.Killing == nil {
		return nil
	}
	if err := r.s.Restore(ctx, *r.state.Killing); err != nil {
		return fmt.Errorf("restore %s: %w", r.state.Killing.Function, err)
	}
	r.state.Killing = nil
	return r.save()
}

// compare waits until the newest version of each document is committed and all queues are empty.
// Then it compares the sink with what was sent.
func (r *runner) compare(ctx context.Context, l *ground.Load, collection string, newest map[string]int) error {
	err := r.s.Eventually(ctx, "the newest version of every document is committed", func() (bool, string) {
		now, err := l.Versions(ctx)
		n := same(now, newest)
		return err == nil && n == len(newest), fmt.Sprintf("%d of %d, %v", n, len(newest), err)
	})
	if err != nil {
		return err
	}
	if err := r.s.Eventually(ctx, "every queue is empty", func() (bool, string) {
		return r.drained(ctx)
	}); err != nil {
		return err
	}
	hits, err := r.g.Search.Look(ctx, r.s.Index(collection))
	if err != nil {
		return err
	}
	got := make(map[string]string, len(hits))
	for id, hit := range hits {
		got[id] = hit.Meta.Version
	}
	for id, version := range newest {
		if got[id] != fmt.Sprint(version) {
			return fmt.Errorf("the sink has version %q of %s, and the newest one is %d", got[id], id, version)
		}
		delete(got, id)
	}
	if len(got) > 0 {
		return fmt.Errorf("the sink has documents that were never sent: %v", got)
	}
	return nil
}

// same returns how many documents have their newest version.
func same(now, newest map[string]int) (n int) {
	for id, version := range newest {
		if now[id] == version {
			n++
		}
	}
	return n
}

// drained reports whether all queues are empty.
func (r *runner) drained(ctx context.Context) (bool, string) {
	var saw []string
	queues := map[string]string{string(flight.Live): r.s.Live, string(flight.Bulk): r.s.Bulk, "dead": r.s.Dead}
	for name, queue := range queues {
		if d, err := r.s.ReadDepth(ctx, queue); err != nil || d != (ground.Depth{}) {
			saw = append(saw, fmt.Sprintf("%s %+v %v", name, d, err))
		}
	}
	return len(saw) == 0, strings.Join(saw, ", ")
}

// measure reads the times of the commits of a collection from the decision log.
func (f *figures) measure(all ground.Decisions, collection string) {
	var ages []time.Duration
	for _, d := range all {
		if d.Step == journal.Committed && strings.HasPrefix(string(d.Doc), collection+"#") {
			ages = append(ages, time.Duration(d.AgeMS)*time.Millisecond)
		}
	}
	f.Writes = len(ages)
	if len(ages) == 0 {
		return
	}
	slices.Sort(ages)
	f.P50, f.P99, f.Max = ages[len(ages)/2], ages[len(ages)*99/100], ages[len(ages)-1]
}

func sleep(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
