// SPDX-License-Identifier: Apache-2.0

package ndjson

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// Sink writes files into a bucket. It is safe for concurrent use.
type Sink struct {
	Options

	bucket *Bucket
	prefix string
	last   atomic.Int64 // the number in the name of the last file
}

var _ sink.Sink = (*Sink)(nil)

// New returns a sink that puts its files below prefix, which is empty or ends with a slash.
func New(bucket *Bucket, prefix string, o Options) *Sink {
	return &Sink{Options: o, bucket: bucket, prefix: prefix}
}

// line is one line of a file: the write or delete of a document.
type line struct {
	Doc event.DocID     `json:"doc"`
	Op  event.Operation `json:"op"`
	// Document is the document, including the field sink.MetaField. It is absent for a delete.
	Document json.RawMessage `json:"document,omitempty"`
}

// Write puts one file with all ops, except those whose document is invalid; see sink.Sink.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	outcomes := make([]sink.Outcome, len(ops))
	var file bytes.Buffer
	for i, op := range ops {
		l := line{Doc: op.Doc, Op: op.Kind}
		if op.Kind == event.Put {
			plain, fault := sink.Plain(op.Document)
			if fault != nil {
				outcomes[i] = fault.Outcome()
				continue
			}
			l.Document = sink.Seal(nil, plain, op.Meta())
		}
		if err := encode(&file, l); err != nil {
			outcomes[i] = sink.Outcome{Kind: sink.Rejected, Reason: sink.NotJSON}
		}
	}
	if file.Len() == 0 {
		return outcomes
	}
	whole := s.put(ctx, file.Bytes())
	for i, o := range outcomes {
		if o.Kind == sink.Applied { // the zero outcome, which means that the line is in the file
			outcomes[i] = whole
		}
	}
	return outcomes
}

// encode writes a line, and does not escape characters of the document.
func encode(file *bytes.Buffer, l line) error {
	e := json.NewEncoder(file)
	e.SetEscapeHTML(false)
	return e.Encode(l)
}

// put writes a file and returns the outcome of all its lines.
func (s *Sink) put(ctx context.Context, content []byte) sink.Outcome {
	if ctx.Err() != nil {
		return sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "not sent: the time is over"}
	}
	err := s.bucket.Put(ctx, s.next(), content)
	switch {
	case err == nil:
		return sink.Outcome{Kind: sink.Applied}
	case refused(err):
		return sink.Outcome{Kind: sink.Throttled, Reason: "bucket refused the file"}
	}
	return sink.Outcome{Kind: sink.Unknown, Reason: "bucket did not answer"}
}

// next returns a name that sorts after all earlier names, even if the clock has not advanced.
func (s *Sink) next() string {
	for {
		last := s.last.Load()
		number := max(time.Now().UnixNano(), last+1)
		if s.last.CompareAndSwap(last, number) {
			return fmt.Sprintf("%s%020d%s", s.prefix, number, s.Suffix)
		}
	}
}

// Ping lists the files, to check that the bucket answers.
func (s *Sink) Ping(ctx context.Context) error {
	_, err := s.bucket.Names(ctx, s.prefix)
	return err
}

// Get returns the document from the last file that contains it.
func (s *Sink) Get(ctx context.Context, doc event.DocID) (sink.Stored, bool, error) {
	all, err := s.read(ctx)
	stored, ok := all[doc]
	return stored, ok, err
}

// All calls f for each document, sorted by collection and id.
func (s *Sink) All(ctx context.Context, f func(sink.Stored) error) error {
	all, err := s.read(ctx)
	if err != nil {
		return err
	}
	for _, doc := range slices.SortedFunc(maps.Keys(all), func(a, b event.DocID) int {
		return cmp.Or(cmp.Compare(a.Collection(), b.Collection()), cmp.Compare(a.ID(), b.ID()))
	}) {
		if err := f(all[doc]); err != nil {
			return err
		}
	}
	return nil
}

// read reads all files, the oldest first, and returns the newest state of each document.
func (s *Sink) read(ctx context.Context) (map[event.DocID]sink.Stored, error) {
	names, err := s.bucket.Names(ctx, s.prefix)
	if err != nil {
		return nil, err
	}
	all := make(map[event.DocID]sink.Stored)
	for _, name := range names {
		content, err := s.bucket.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		for text := range bytes.Lines(content) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			if l.Op == event.Delete {
				delete(all, l.Doc)
				continue
			}
			meta, plain, _, err := sink.Unseal(l.Document)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			all[l.Doc] = meta.Stored(l.Doc, plain)
		}
	}
	return all, nil
}
