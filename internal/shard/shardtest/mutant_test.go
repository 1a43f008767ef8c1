// SPDX-License-Identifier: Apache-2.0

package shardtest_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A mutation changes one write. It returns false if the write lacks the part that the mutation
// changes.
type mutation func(shard.Write) (shard.Write, bool)

// mutant is a store that executes mutated writes.
type mutant struct {
	shard.Store
	mutate mutation
}

func (m mutant) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	if changed, ok := m.mutate(w); ok {
		w = changed
	}
	return m.Store.Write(ctx, w)
}

// listener replaces the testing.TB of the suite, so that a failure of the suite does not fail the
// test.
type listener struct {
	testing.TB
	mu   sync.Mutex
	said string
}

func (l *listener) Errorf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said += fmt.Sprintf(format, args...) + "\n"
}

func (l *listener) Fatalf(format string, args ...any) {
	l.Errorf(format, args...)
	runtime.Goexit()
}

// check is one duty or one case of the suite.
type check struct {
	name string
	run  func(*shardtest.Env)
}

// killed returns the first check that notices the fault of a store, and the message of that check.
// Both results are empty if no check notices it.
func killed(t *testing.T, s shard.Store, checks []check) (by, said string) {
	t.Helper()
	l := &listener{TB: t}
	env := shardtest.NewEnv(l, s, shardtest.Capabilities{})
	var suite sync.WaitGroup
	suite.Go(func() {
		for _, c := range checks {
			by = c.name
			if c.run(env); l.said != "" {
				return
			}
		}
	})
	suite.Wait()
	return by, l.said
}

// casesOf returns the cases of a write.
func casesOf(write shard.Transition) (checks []check) {
	for _, c := range shardtest.Cases() {
		if c.Write.Transition == write {
			checks = append(checks, check{c.Name, c.Check})
		}
	}
	return checks
}

var signs = map[shard.Op]string{
	shard.Absent: "absent", shard.Exists: "exists", shard.Equal: "=", shard.NotEqual: "<>", shard.Less: "<",
	shard.AtMost:  "<=",
	shard.Greater: ">", shard.AtLeast: ">=",
}

func termText(t shard.Term) string { return string(t.Attr) + " " + signs[t.Op] }

func clauseText(c shard.Clause) string {
	terms := make([]string, len(c))
	for i, t := range c {
		terms[i] = termText(t)
	}
	return strings.Join(terms, " or ")
}

var verbs = map[shard.Verb]string{
	shard.Set: "SET", shard.SetIfAbsent: "SET IF ABSENT", shard.Copy: "COPY",
	shard.Remove: "REMOVE", shard.Add: "ADD",
}

func actionText(a shard.Action) string { return verbs[a.Verb] + " " + string(a.Attr) }

// writes returns the writes of all cases, by transition.
func writes() map[shard.Transition][]shard.Write {
	forms := map[shard.Transition][]shard.Write{}
	for _, c := range shardtest.Cases() {
		forms[c.Write.Transition] = append(forms[c.Write.Transition], c.Write)
	}
	return forms
}

// inClause changes every clause with this text. change returns false to remove the clause.
func inClause(text string, change func(shard.Clause) (shard.Clause, bool)) mutation {
	return func(w shard.Write) (_ shard.Write, hit bool) {
		w.Cond, hit = mutated(w.Cond, text, clauseText, func(c shard.Clause) (shard.Clause, bool) {
			return change(slices.Clone(c))
		})
		return w, hit
	}
}

// inUpdate changes every action with this text. change returns false to remove the action.
func inUpdate(text string, change func(shard.Action) (shard.Action, bool)) mutation {
	return func(w shard.Write) (_ shard.Write, hit bool) {
		w.Update, hit = mutated(w.Update, text, actionText, change)
		return w, hit
	}
}

// mutated returns the parts of a write after changing the parts with this text. hit says whether
// the write had such a part.
func mutated[P any](parts []P, text string, read func(P) string, change func(P) (P, bool)) (all []P, hit bool) {
	for _, p := range parts {
		keep := true
		if read(p) == text {
			hit = true
			p, keep = change(p)
		}
		if keep {
			all = append(all, p)
		}
	}
	return all, hit
}

// bends lists, for each comparison, other comparisons that are nearly the same.
var bends = map[shard.Op][]shard.Op{
	shard.Absent: {shard.Exists}, shard.Exists: {shard.Absent},
	shard.Equal:    {shard.AtMost, shard.AtLeast, shard.NotEqual},
	shard.NotEqual: {shard.Less, shard.Greater, shard.Equal}, shard.Less: {shard.AtMost, shard.NotEqual},
	shard.AtMost:  {shard.Less},
	shard.Greater: {shard.AtLeast, shard.NotEqual}, shard.AtLeast: {shard.Greater},
}

type named struct {
	write shard.Transition
	text  string
	mutation
}

// mutants lists every change of one clause, one comparison or one action, once per write.
func mutants() []named {
	var all []named
	for name, forms := range writes() {
		clauses, actions := map[string]shard.Clause{}, map[string]shard.Action{}
		for _, w := range forms {
			for _, c := range w.Cond {
				clauses[clauseText(c)] = c
			}
			for _, a := range w.Update {
				actions[actionText(a)] = a
			}
		}
		for text, c := range clauses {
			all = append(all, named{
				name, "without (" + text + ")",
				inClause(text, func(c shard.Clause) (shard.Clause, bool) { return c, false }),
			})
			for i, term := range c {
				if len(c) > 1 {
					all = append(all, named{
						name, fmt.Sprintf("without %q of (%s)", termText(term), text),
						inClause(text, func(c shard.Clause) (shard.Clause, bool) {
							return slices.Delete(c, i, i+1), true
						}),
					})
				}
				for _, op := range bends[term.Op] {
					all = append(all, named{
						name, fmt.Sprintf("%q made %q in (%s)", termText(term), signs[op], text),
						inClause(text, func(c shard.Clause) (shard.Clause, bool) {
							c[i].Op = op
							return c, true
						}),
					})
				}
			}
		}
		for text, a := range actions {
			all = append(all, named{
				name, "without " + text,
				inUpdate(text, func(a shard.Action) (shard.Action, bool) { return a, false }),
			})
			if a.Verb == shard.SetIfAbsent || a.Verb == shard.Add {
				all = append(all, named{
					name, text + " made SET",
					inUpdate(text, func(a shard.Action) (shard.Action, bool) {
						a.Verb = shard.Set
						return a, true
					}),
				})
			}
		}
	}
	slices.SortFunc(all, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.write, b.write), cmp.Compare(a.text, b.text))
	})
	return all
}

// equivalent lists changes that do not change the meaning of a CLAIM, each with the reason.
var equivalent = map[string]string{
	`"last_write <" made "<>" in (last_write absent or last_write <)`: "a last write after now is refused by " +
		"last_write <= now - minInterval as well",
	`"pending =" made "<=" in (pending = or burst_start <=)`: "pending < k is refused by pending >= k as well",
}

func TestTheSuiteKillsEveryMutantOfEveryWrite(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	count := map[shard.Transition]int{}
	checks := map[shard.Transition][]check{}
	for _, w := range shard.Transitions() {
		checks[w] = casesOf(w)
	}
	for _, m := range mutants() {
		by, said := killed(t, mutant{memory.NewShards(), m.mutation}, checks[m.write])
		dead := said != ""
		if why := equivalent[m.text]; why != "" && m.write.Base() == shard.CLAIM {
			if dead {
				t.Errorf("%s %s is killed by %q, but the list says that it changes nothing: %s", m.write, m.text, by, why)
			}
			continue
		}
		if !dead {
			t.Errorf("%s %s survives", m.write, m.text)
			continue
		}
		count[m.write]++
		if strings.HasPrefix(m.text, "without (") {
			fmt.Fprintf(&table, "%-20s %-60s killed by: %s\n", m.write, m.text, by)
		}
	}
	t.Logf("clauses:\n%s", table.String())
	total := 0
	for _, w := range shard.Transitions() {
		t.Logf("%-20s %3d mutants killed", w, count[w])
		total += count[w]
	}
	t.Logf("%d mutants killed", total)
}

func TestEndsLeaseIsTrueOfExactlyTheWritesThatTakeADocumentsOwnerAway(t *testing.T) {
	t.Parallel()
	for write, forms := range writes() {
		ends := slices.ContainsFunc(forms, func(w shard.Write) bool {
			removed := shard.Action{Verb: shard.Remove, Attr: shard.AttrOwner}
			return write < shard.TRIP && slices.Contains(w.Update, removed)
		})
		if got := write.EndsLease(); got != ends {
			t.Errorf("%s ends a lease: %v, want %v", write, got, ends)
		}
	}
}

func TestEveryWriteOfTheModelIsInTheSuite(t *testing.T) {
	t.Parallel()
	forms := writes()
	for _, w := range shard.Transitions() {
		if len(forms[w]) == 0 {
			t.Errorf("%s has no case", w)
		}
	}
	if len(forms) != len(shard.Transitions()) {
		t.Errorf("the cases have %d transitions, want %d", len(forms), len(shard.Transitions()))
	}
}
