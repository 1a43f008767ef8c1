// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/config"
)

// Finding is the effect of one changed setting on a deploy.
type Finding struct {
	Setting string `json:"setting"`
	Old     string `json:"old"` // empty if the setting is new
	New     string `json:"new"` // empty if the setting was removed
	// Stack is what happens to the resources of the stack: Updated, Created or Removed. It is
	// Replaced if every resource gets another name.
	Stack Action `json:"stack"`
	Does  string `json:"does"`
	First string `json:"first,omitempty"` // what to do before the deploy, or right after it
	// Serious says that something is replaced, lost or left behind unless the operator does First.
	Serious bool `json:"serious"`
}

// rule is the effect of changing certain settings. The first matching rule is used.
type rule struct {
	settings []string                 // generic names
	when     func(config.Change) bool // nil for every change
	finding  Finding
}

const (
	drain  = "first stop the senders, and wait until `lull status` shows empty queues and no flights"
	resync = "after the deploy, publish everything again: `lull resync`"
)

// none is an empty text, as config.Change writes it.
const none = `""`

// rules lists the settings that affect more than future events.
var rules = []rule{
	{[]string{"stack"}, nil, Finding{
		Stack: Replaced, Serious: true,
		Does:  "the deploy creates another stack, with a new and empty table, bucket and queues; the old stack stays",
		First: "after the deploy, move the senders, publish everything again (`lull resync`), and remove the old stack",
	}},
	{[]string{"parts.of", "parts.this"}, nil, Finding{
		Serious: true, Does: "documents move to other parts, whose tables do not know their versions",
		First: drain + "; deploy all parts, and run `lull index repair` in each before the senders start again (docs/scale.md)",
	}},
	{[]string{"sinks.<name>.kind", "sinks.<name>.url", "sinks.<name>.index"}, nil, Finding{
		Does:    "documents are written to another place, which does not have the documents that were written before",
		First:   resync,
		Serious: true,
	}},
	{[]string{"table.name"}, func(c config.Change) bool { return c.Old == none }, Finding{
		Stack: Removed, Serious: true, First: resync,
		Does: "the stack's own table stays in the account, outside of the stack; the other table knows no version of any document",
	}},
	{[]string{"table.name"}, func(c config.Change) bool { return c.New == none }, Finding{
		Stack: Created, Serious: true,
		First: resync + "; if the stack had its own table before, that table still exists: import it before the deploy",
		Does:  "the stack creates its own table, which is empty; the other table does not change",
	}},
	{[]string{"table.name"}, nil, Finding{
		Serious: true, First: resync, Does: "the other table knows no version of any document",
	}},
	{[]string{"table.billing"}, func(c config.Change) bool { return c.New == string(config.Provisioned) }, Finding{
		Does:  "the table begins with the min of each capacity, and writes are throttled until auto scaling has raised it",
		First: "set table.writes.min and table.reads.min to what the table uses now; lower them a day later", Serious: true,
	}},
	{[]string{"sinks.<name>.liveQueue"}, nil, Finding{
		Stack: Replaced, Serious: true,
		First: drain + "; if the stack's own live queue still exists from before, import or delete it",
		Does:  "receive reads another queue; the former queue stays with its messages, and no function reads them",
	}},
	{[]string{"sources.<name>.class"}, nil, Finding{
		Does:  "versions of the new class cannot be compared with the versions in the rows: events become dead letters",
		First: "keep the class; if the source's versions begin again at low numbers, raise its epoch", Serious: true,
	}},
	{[]string{"sources.<name>.epoch"}, config.Change.Lowered, Finding{
		Does: "events of the lower epoch are older than the committed versions, so lull skips them as stale", Serious: true,
		First: "do not lower the epoch: it may only grow",
	}},
	{[]string{
		"sources.<name>.kind", "defaultSource", "sources.<name>.json.id", "sources.<name>.json.version",
		"sources.<name>.json.collection", "sources.<name>.debezium.key", "sources.<name>.debezium.version",
		"sources.<name>.debezium.binlog", "sources.<name>.debezium.sequence",
		"sources.<name>.s3.stripPrefix", "sources.<name>.s3.stripSuffix",
	}, nil, Finding{
		Does:  "messages that wait are decoded by the new rule: their documents may get other keys, or they become dead letters",
		First: drain, Serious: true,
	}},
	{[]string{"sources.<name>.govuk.locales"}, func(c config.Change) bool { return c.Old != "" }, Finding{
		Does: "translations get other ids, or are no longer indexed: the sink keeps the documents with the old ids",
		First: "keep the list, and add locales only at its end; if you need another list, name a new index, " +
			"and after the deploy publish everything again (`lull resync`)",
		Serious: true,
	}},
	{[]string{"queues.retention", "queues.deadLetterRetention"}, config.Change.Lowered, Finding{
		Does: "SQS deletes the messages that are older than the new retention", Serious: true,
		First: "first wait until no message is older than that: see the metric ApproximateAgeOfOldestMessage",
	}},
	{[]string{"tableOutage"}, to(config.TableOutageOpen), Finding{
		Stack: Created, Does: "an alarm for each sink: outage-writes",
	}},
	{[]string{"tableOutage"}, to(config.TableOutageClosed), Finding{
		Stack: Removed, Does: "an alarm of each sink: outage-writes",
	}},
	{[]string{"commitFeed"}, func(c config.Change) bool { return c.New == "true" }, Finding{
		Stack: Created, Does: "a pipe and its function; the table gets a stream in place. Commits are published from now on",
	}},
	{[]string{"commitFeed"}, nil, Finding{
		Stack: Removed, Does: "the pipe, its function and the table's stream are deleted, with the commits not yet published",
		First: "stop the programs that need these events", Serious: true,
	}},
	{[]string{"searchableCalls"}, func(c config.Change) bool { return c.Old == "" }, Finding{
		Stack: Created, Does: "a function with a URL and two alarms; its calls are taken from the account's concurrency",
	}},
	{[]string{"searchableCalls"}, func(c config.Change) bool { return c.New == "" }, Finding{
		Stack: Removed, Does: "the function and its URL are deleted; a new function gets another URL",
		First: "stop the programs that ask the URL", Serious: true,
	}},
	{[]string{"archive.keep"}, func(c config.Change) bool { return c.Old == "0s" }, Finding{
		Stack: Created, Does: "an alarm for each sink: archive-lost; receive archives messages from now on",
	}},
	{[]string{"archive.keep"}, func(c config.Change) bool { return c.New == "0s" }, Finding{
		Stack: Removed, Serious: true,
		Does:  "an alarm of each sink: archive-lost; S3 deletes the archive",
		First: "if you need the archive, copy archive/ out of the bucket, or send its messages again (`lull replay`)",
	}},
	{[]string{"archive.keep"}, config.Change.Lowered, Finding{
		Serious: true, Does: "S3 deletes the objects of the archive that are older",
		First: "if you need them, copy archive/ out of the bucket, or send their messages again (`lull replay`)",
	}},
	{[]string{"collections.<name>.enrich.kind"}, func(c config.Change) bool { return c.Old == "" }, Finding{
		Stack: Created, First: resync,
		Does: "documents are enriched from now on; an alarm for their sink: enricher-away",
	}},
	{[]string{"collections.<name>.enrich.kind"}, func(c config.Change) bool { return c.New == "" }, Finding{
		Stack: Removed, First: resync,
		Does: "documents are no longer enriched, and keep the fields that they have; the alarm enricher-away of their sink is deleted",
	}},
	{[]string{
		"collections.<name>.enrich.kind", "collections.<name>.enrich.url", "collections.<name>.enrich.functionARN",
		"collections.<name>.enrich.inputs", "collections.<name>.enrich.version",
	}, nil, Finding{
		First: resync, Does: "documents keep the fields of the former enricher until they are written again",
	}},
	{[]string{"lifecycle.rowRetention"}, config.Change.Raised, Finding{
		Does:    "until the new time has passed, a document whose row was already deleted counts as one without a version",
		First:   "until then, drop dead letters that are older than the former retention instead of redriving them",
		Serious: true,
	}},
}

func to(value config.TableOutage) func(config.Change) bool {
	return func(c config.Change) bool { return c.New == string(value) }
}

// Settings lists, by setting, what a deploy of the newer settings does to a stack that was deployed
// with the older settings. Both settings must be complete and valid. Settings does not know the
// options of the CDK app, or the effects of another version of lull. Templates knows both.
func Settings(older, newer *config.Config) []Finding {
	whole := entries(older, newer)
	found := slices.Clone(whole)
	for _, c := range config.Changes(older, newer) {
		if slices.ContainsFunc(whole, func(f Finding) bool { return strings.HasPrefix(c.Name+".", f.Setting+".") }) {
			continue // this entry was added or removed, and entries has reported the whole entry
		}
		f := Finding{Stack: Updated, Does: "in place"}
		for _, r := range rules {
			if slices.Contains(r.settings, c.Generic) && (r.when == nil || r.when(c)) {
				f = r.finding
				break
			}
		}
		f.Setting, f.Old, f.New, f.Stack = c.Name, c.Old, c.New, cmp.Or(f.Stack, Updated)
		found = append(found, f)
	}
	return append(found, moves(older, newer)...)
}

// entries lists the sinks, sources and collections that were added or removed.
func entries(older, newer *config.Config) (found []Finding) {
	add := func(f Finding) { found = append(found, f) }
	for _, name := range only(newer.Sinks, older.Sinks) {
		add(Finding{
			Setting: "sinks." + name, New: "added", Stack: Created,
			Does: "queues, functions, state machines, rules and alarms of its own",
			First: "if a sink with this name was removed before, its queues still exist: import or delete them first" +
				" (docs/transitions.md)",
		})
	}
	for _, name := range only(older.Sinks, newer.Sinks) {
		add(Finding{
			Setting: "sinks." + name, Old: "removed", Stack: Removed, Serious: true,
			Does: "its functions, state machines and alarms are deleted; its three queues stay, with their messages, " +
				"and no function reads them",
			First: drain,
		})
	}
	for _, name := range only(newer.Sources, older.Sources) {
		add(Finding{Setting: "sources." + name, New: "added", Stack: Updated, Does: "in place"})
	}
	for _, name := range only(older.Sources, newer.Sources) {
		add(Finding{
			Setting: "sources." + name, Old: "removed", Stack: Updated, Serious: true, First: drain,
			Does: "its messages that wait are decoded by another source, and become dead letters if that source cannot decode them",
		})
	}
	for _, name := range only(newer.Collections, older.Collections) {
		f := Finding{Setting: "collections." + name, New: "added", Stack: Updated, Does: "in place"}
		if newer.Collections[name].Enrich != nil {
			f.Stack, f.Does = Created, "an alarm of its sink: enricher-away"
		}
		if len(older.Collections) == 0 {
			f.Does, f.First, f.Serious = others, "list every collection that events may name", true
		}
		add(f)
	}
	for _, name := range only(older.Collections, newer.Collections) {
		f := Finding{Setting: "collections." + name, Old: "removed", Stack: Updated, Does: "in place"}
		if older.Collections[name].Enrich != nil {
			f.Stack, f.Does = Removed, "the alarm of its sink: enricher-away"
		}
		if len(newer.Collections) > 0 {
			f.Does, f.First, f.Serious = others, drain, true
		}
		add(f)
	}
	return found
}

const others = "events of a collection that is not listed become dead letters; its documents stay in the sink"

// moves lists the collections that the settings name and whose sinks change.
func moves(older, newer *config.Config) (found []Finding) {
	named := merged(older.Collections, newer.Collections)
	if len(named) == 0 {
		named[newer.DefaultCollection] = config.Collection{}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		from, to := older.SinksFor(name), newer.SinksFor(name)
		if slices.Equal(from, to) {
			continue
		}
		f := moved(name, from, to)
		f.Setting, f.Stack = "collections."+name, Updated
		f.Old, f.New = "sink "+strings.Join(from, ", "), "sink "+strings.Join(to, ", ")
		found = append(found, f)
	}
	return found
}

// moved returns the effect of changing the list of sinks of a collection. The rows of the first
// sink are named after the collection only, so the first sink must not change (ADR 0049).
func moved(name string, from, to []string) Finding {
	added := slices.DeleteFunc(slices.Clone(to), func(sink string) bool { return slices.Contains(from, sink) })
	gone := slices.ContainsFunc(from, func(sink string) bool { return !slices.Contains(to, sink) })
	switch {
	case from[0] == to[0] && gone:
		return Finding{
			Serious: true, First: drain,
			Does: "the removed sink keeps its documents; the other sinks continue",
		}
	case from[0] == to[0] && len(added) == 0:
		return Finding{Does: "nothing: the first sink stays the first"}
	case from[0] == to[0]:
		return Finding{
			Does: "the collection is also written to " + strings.Join(added, ", ") + ", which has no documents yet",
			First: "after the deploy, let the senders also reach the new queue, and fill the sink: `lull backfill " + name + " --sink " +
				strings.Join(added, "`, `lull backfill "+name+" --sink ") + "`",
		}
	case len(from) == 1 && len(to) == 1:
		return Finding{
			Serious: true, First: drain + "; then move the senders; " + resync,
			Does: fmt.Sprintf("its documents stay in %s, and its messages that wait there become dead letters", from[0]),
		}
	}
	return Finding{
		Serious: true,
		Does: fmt.Sprintf("%s takes over the rows of %s, which was the first sink, as if it had the documents of that sink",
			to[0], from[0]),
		First: fmt.Sprintf("keep %s first in the list, and add sinks after it. To replace it: %s, deploy, and for each sink that "+
			"stays `lull index repair %s --sink NAME --source EXPORT`", from[0], strings.TrimPrefix(drain, "first "), name),
	}
}

// only returns the names that a has and b does not have.
func only[V any](a, b map[string]V) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(name string) bool {
		_, both := b[name]
		return both
	})
}
