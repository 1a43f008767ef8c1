// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// States of a document that was compared with the answer of its source.
const (
	Orphan State = "orphan" // the source does not have the document, and lull or the sink does
	Silent State = "silent" // the source gives no answer now
)

// Fetch loads the newest state of a document from a source, with the errors of
// [payload.Loader.Fetch].
type Fetch func(ctx context.Context, from, ref string) ([]byte, error)

// Asker compares documents with the answers of their source, which has the setting fetch. It only
// reads. All fields are required, except Versions. It is safe for concurrent use.
type Asker struct {
	reconcile.Looker

	Sources    *source.Set
	Collection shard.Collection
	Source     string // the name of the source
	Fetch      Fetch
	// Versions compares only versions. If the source shows no version, it compares only whether the
	// document exists.
	Versions bool
}

// Answer is what the source says about a document.
type Answer struct {
	Verdict

	// Ahead says that lull has not committed what the source shows. Its event may be on the way.
	Ahead bool
	// Shown says that Version is the version that the source shows.
	Shown bool
	// Touch is the message that makes lull fetch the document again. It is empty if the document is
	// not to be fetched again.
	Touch queue.Outgoing
	Copy  shard.InSink        // the copy in the sink
	Away  *source.Unavailable // set for the state Silent
}

// maxAsked is how many requests an Asker sends to the source at the same time.
const maxAsked = 8

// Writes reports why no message of the source can name a document of the collection. Without such a
// message a difference could not be repaired.
func (a Asker) Writes() error {
	_, err := a.touch(shard.DocID(string(a.Collection)+"#probe"), a.first())
	return err
}

// first is a version that every source may have.
func (a Asker) first() string { return source.NumberedVersion(a.Config.Sources[a.Source].Class, 1) }

// touch writes the message that makes lull fetch a document.
func (a Asker) touch(doc shard.DocID, version string) (feed.Written, error) {
	m, err := feed.WriterOf(a.Config, a.Sources, a.Source, string(a.Collection)).Write(source.Change{
		ID: doc.ID(), Op: event.Put, Version: version, Time: a.Clock.Now(),
	})
	switch {
	case err != nil:
		return m, err
	case m.Event.Doc != doc.Plain():
		return m, fmt.Errorf("a message of source %s cannot name it: lull would read %s", a.Source, m.Event.Doc)
	case m.Event.Fetch != a.Source:
		return m, fmt.Errorf("source %s has no setting fetch", a.Source)
	}
	return m, nil
}

// fetched is the answer of the source to one request.
type fetched struct {
	document string
	version  string // empty if the source shows none
	err      error  // *source.Unavailable, or *event.Invalid
}

// Ask compares documents with the source. There is one answer for each document, in their order. It
// asks the source before it reads the rows and the sink. So a document that changes in the meantime
// looks newer in lull, and not older.
//
// If known has a version of a document, Ask compares with this version, and sends no request. The
// source has shown this version before.
func (a Asker) Ask(ctx context.Context, docs []shard.DocID, known map[shard.DocID]string) ([]Answer, error) {
	versions, err := a.versions(ctx, docs)
	if err != nil {
		return nil, err
	}
	all := make([]fetched, len(docs))
	err = a.Parallel.Try(maxAsked, len(docs), func(i int) error {
		if all[i].version = known[docs[i]]; all[i].version == "" {
			all[i] = a.fetch(ctx, docs[i], versions[i])
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	a.Whole = true
	found, err := a.Look(ctx, docs)
	if err != nil {
		return nil, fmt.Errorf("compare with source %s: %w", a.Source, err)
	}
	answers := make([]Answer, len(docs))
	for i := range docs {
		answers[i] = a.judge(docs[i], all[i], found[i])
	}
	return answers, nil
}

// versions returns the versions that the addresses of the documents need. Only a fetch.url with
// {version} needs the version of the row.
func (a Asker) versions(ctx context.Context, docs []shard.DocID) ([]string, error) {
	all := make([]string, len(docs))
	for i := range docs {
		all[i] = a.first()
	}
	f := a.Config.Sources[a.Source].Fetch
	if f == nil || !strings.Contains(f.URL, "{version}") {
		return all, nil
	}
	found, err := a.Look(ctx, docs)
	if err != nil {
		return nil, fmt.Errorf("compare with source %s: %w", a.Source, err)
	}
	for i, f := range found {
		all[i] = cmp.Or(max(f.Row.Committed, f.Copy.Key).VersionText(), all[i])
	}
	return all, nil
}

// fetch asks the source for one document.
func (a Asker) fetch(ctx context.Context, doc shard.DocID, version string) (f fetched) {
	m, err := a.touch(doc, version)
	if err != nil {
		return fetched{err: &event.Invalid{Reason: event.Payload, Problem: err.Error()}}
	}
	body, err := a.Fetch(ctx, m.Event.Fetch, m.Event.DataRef)
	if err == nil {
		f.document = string(body)
		f.version, err = a.Sources.Shown(a.Source, f.document)
	}
	var bad *event.Invalid
	var away *source.Unavailable
	switch {
	case err == nil:
	case errors.As(err, &bad) && bad.Stale: // the answer may be a maintenance page, and not the document
		f.err = &source.Unavailable{Problem: bad.Problem}
	case errors.As(err, &bad):
		f.err = bad
	case errors.As(err, &away):
		f.err = away
	default:
		f.err = &source.Unavailable{Problem: "the source cannot be asked now"}
	}
	return f
}

// judge compares the answer of the source with the row and the sink.
func (a Asker) judge(doc shard.DocID, got fetched, f reconcile.Finding) Answer {
	out := Answer{Verdict: Verdict{Doc: doc}, Copy: f.Copy, Shown: got.version != ""}
	var bad *event.Invalid
	switch {
	case errors.As(got.err, &bad) && bad.Missing:
		out.State, out.Ahead = gone(f, shard.MicrosOf(a.Clock.Now().Add(-clock.Trust))), true
		out.Version = max(f.Row.Committed, f.Copy.Key).VersionText()
		return out
	case errors.As(got.err, &bad):
		out.State, out.Why = Invalid, bad.Error()
		return out
	case errors.As(got.err, &out.Away):
		out.State, out.Why = Silent, out.Away.Problem
		return out
	}
	// Without a version in the answer, the touch has the version that lull has. Its resync run
	// makes it newer than that version, and than nothing else.
	known := max(f.Row.Committed, f.Copy.Key)
	class := a.Config.Sources[a.Source].Class
	version := cmp.Or(got.version, known.VersionText(), source.VersionAt(class, a.Clock.Now()))
	m, err := a.touch(doc, version)
	if err != nil {
		out.State, out.Why = Invalid, err.Error()
		return out
	}
	c := candidate{event: m.Event, arrival: got.version == ""}
	c.event.Data = got.document
	if got.document != "" && !a.Versions {
		if c.document, err = a.document(m, c.event); err != nil {
			out.State, out.Why = Invalid, err.Error()
			return out
		}
	}
	out.Touch, out.Version = m.Outgoing, version
	out.State = judge(c, f)
	switch d := f.Difference; {
	case out.State != Same:
	case d == shard.Missing, d == shard.Older && !f.Unsure, d == shard.Changed:
		out.State = State(d.String()) // the content is right, and the sink's version is not the row's
	}
	if f.Row.Committed.IsFinal() && out.State.Drift() {
		out.State = Newer // an operator has forgotten the document (lull forget)
	}
	row, err := compare(f.Row.Committed, c)
	out.Ahead = err == nil && (row < 0 || c.arrival && !f.Difference.Drift())
	return out
}

// document makes the document that the sink would get.
func (a Asker) document(m feed.Written, e event.Event) ([]byte, error) {
	document, err := a.Sources.Document(event.Message{Body: m.Body, Attributes: m.Attributes, Sent: a.Clock.Now()}, e)
	if err != nil {
		return nil, err
	}
	plain, bad := sink.Plain(document)
	if bad != nil {
		return nil, bad
	}
	return plain, nil
}

// gone returns the state of a document that the source does not have. If lull wrote the document
// after since, a replica of the source may lag, and the document is not called an orphan.
func gone(f reconcile.Finding, since shard.Micros) State {
	switch {
	case f.Difference == shard.Busy, f.Difference == shard.Waiting, f.Row.Pending > f.Row.Committed:
		return Moving
	case f.Document == nil && (f.Row.Committed == "" || f.Row.CommittedOp == shard.Delete):
		return Same
	case shard.Micros(f.Copy.Fence) > since, f.Row.LastWrite > since:
		return Newer
	}
	return Orphan
}
