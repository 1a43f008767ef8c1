// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lullhq/lull/event"
)

// Op is one document to write under a lease.
type Op struct {
	Doc      event.DocID
	Kind     event.Operation // event.Put or event.Delete
	Fence    event.Fence     // the external version, for sinks with versions
	Key      event.OrderKey  // stored as _lull.order_key
	Version  string          // the upstream's own text, stored as _lull.version
	At       time.Time       // stored as _lull.indexed_at
	Document []byte          // JSON object; nil for a delete
	// Present says that the sink should have the document, because its row records a committed put.
	// If Present is set, and the index does not exist, a delete answers Configuration, not Applied.
	Present bool
}

// OutcomeKind says how the sink answered one Op.
type OutcomeKind byte

// The kinds of outcomes: the rows of the table in section 8 of the design.
const (
	Applied   OutcomeKind = iota // the op was applied, or it was a delete of a missing document: COMMIT
	Throttled                    // refused before anything was applied: RELEASE without a refusal
	Unknown                      // time-out, 5xx, connection reset, wrong number of answers: the lease and claimed stay
	// Newer means 409: the sink has a greater fence. Under a valid lease this is never a success:
	// the alarm SinkNewer is raised, and the op's outcome is unknown
	Newer
	Refused  // this op failed for an unclassified reason and was not applied: RELEASE with a refusal
	Rejected // the op can never succeed (mapping error, too large): dead letter, REJECT
	// Configuration means that nothing was applied and no document is at fault. An operator must
	// fix something, such as credentials or a missing index: RELEASE without a refusal, alarm
	Configuration
)

// OutcomeKinds returns all kinds of outcomes, in the order of their constants.
func OutcomeKinds() []OutcomeKind {
	return []OutcomeKind{Applied, Throttled, Unknown, Newer, Refused, Rejected, Configuration}
}

// String returns the word for the kind in logs and metrics.
func (k OutcomeKind) String() string {
	return [...]string{"applied", "throttled", "unknown", "newer", "refused", "rejected", "configuration"}[k]
}

// Outcome is the answer for one Op.
type Outcome struct {
	Kind       OutcomeKind
	RetryAfter time.Duration // for Throttled: how long the sink asked us to wait, 0 if it did not
	Status     int           // the status code of the sink's answer, 0 if there is none
	// Apart says that the answer is not about the sink as a whole. The answer is about this op or
	// one index, or there was no time to send the op. Other ops may still be written.
	Apart  bool
	Reason string // the class and the field, never content of a document: "mapper_parsing_exception: field title"
}

// Sink writes documents. A Sink is safe for concurrent use.
type Sink interface {
	// Write sends the ops in one bulk request, or in several if the sink limits the size of a
	// request. The ops are for different documents. Write returns exactly one outcome for each op,
	// in the order of ops. Write never retries: under one claim, only a definite refusal allows a
	// second request. When ctx ends, an op without an answer that may have reached the sink is
	// Unknown. An op that was certainly not sent is Throttled and Apart.
	Write(ctx context.Context, ops []Op) []Outcome
	// Ping asks the sink whether it works, without reading or writing a document. ErrDenied means
	// that the sink answers but does not allow this request; writes may still succeed. Any other
	// error means that the sink cannot be reached or is not ready. ErrAway means that the sink
	// itself says that it is not ready.
	Ping(ctx context.Context) error
}

// ErrDenied is the error of a sink that answers, but whose credentials do not allow the request.
// Match ErrDenied with errors.Is. Other requests may still be allowed.
var ErrDenied = errors.New("the sink denies access")

// ErrAway is the error of a sink that answers, but cannot serve requests at the moment: it is
// starting, overloaded or under maintenance. The same request may succeed later. Match ErrAway with
// errors.Is.
var ErrAway = errors.New("the sink is unavailable for now")

// Reader reads documents from a sink, for commands and tests.
type Reader interface {
	// Get returns the document, or false.
	Get(ctx context.Context, doc event.DocID) (Stored, bool, error)
	// All calls f for each document, sorted by collection and id, until f returns an error. The
	// mark of a document is its `_lull` member. If a mark cannot be read, f may get only the field
	// Doc.
	All(ctx context.Context, f func(Stored) error) error
	// Search returns the documents that contain every word of the query's text, best first. Each
	// engine decides what a word is, and which forms of a word are equal. With Prefix, the last
	// word of the query may be the beginning of a word, in upper or lower case.
	Search(ctx context.Context, q Query) ([]Stored, error)
}

// Sampler is a sink with versions that can name an existing document. If the sink refuses documents
// and all of these documents are new, lull tests the sink before they become dead letters. lull
// reads the named document and writes it again with an older fence. For that test, the sink must
// check a document's contents before it compares fences.
type Sampler interface {
	// Sample names any document of the collection that lull wrote, or returns false if there is
	// none. The document may have been deleted in the meantime.
	Sample(ctx context.Context, c event.Collection) (event.DocID, bool, error)
}

// Marker is a Reader that reads the marks of many documents at once. A mark is the metadata in
// `_lull`. This interface is optional. With a Marker, lull compares a hundred documents with their
// rows in one request.
type Marker interface {
	// Marks returns the current mark of each document, without its content, in the order of docs.
	// The zero Stored means that the document is missing or that lull did not write it. If a mark
	// cannot be read, its Stored has only Doc.
	Marks(ctx context.Context, docs []event.DocID) ([]Stored, error)
}

// Finder is a Reader that knows what a search finds at the moment. This interface is optional. Some
// engines, such as OpenSearch, show a write to searches only after their next refresh, although Get
// returns the document at once.
type Finder interface {
	// Found returns the mark of a document as a search finds it, without its content. It returns
	// false if no search finds the document.
	Found(ctx context.Context, doc event.DocID) (Stored, bool, error)
}

// Auditor is a Reader that lull can compare with a source, document by document. This interface is
// optional. With an Auditor, `lull index check` continues where it stopped, and sees documents that
// lull did not write. A document that lull did not write, or whose mark cannot be read, has only
// Doc and Document.
type Auditor interface {
	// Range calls f for each document of a collection whose id is greater than after, by id, until
	// f returns an error. An empty after means all documents.
	Range(ctx context.Context, c event.Collection, after string, f func(Stored) error) error
	// Documents returns the current documents, in the order of docs. The zero Stored means that a
	// document is missing.
	Documents(ctx context.Context, docs []event.DocID) ([]Stored, error)
}

// Omitter is a Reader whose engine may store a document without making all its values searchable.
// An example is a text in a field whose mapping requires a number.
type Omitter interface {
	// Omitted counts the documents of a collection with values that a search does not find. Omitted
	// counts only documents that lull wrote.
	Omitted(ctx context.Context, c event.Collection) (Omitted, error)
}

// Omitted describes documents with values that a search does not find.
type Omitted struct {
	Documents int64
	Some      []event.DocID // at most MaxOmitted of the documents
	Fields    []string      // at most MaxOmitted of the documents' fields, only plain names: see [PlainName]
}

// MaxOmitted is how many documents and how many fields Omitted names at most.
const MaxOmitted = 10

// Generator is a sink that can recognise an index, even if another index had the same name before.
// Only such a sink may have the setting unchanged: keep. The row of a document records which
// generation of the index has the document's bytes.
type Generator interface {
	// Generation returns a text that identifies the index which now has the collection's documents.
	// The text of an index never changes. An index that was created again under the same name gets
	// another text. An empty text means that unchanged documents cannot be recognised. Examples are
	// an alias of several indices, and an index that returns documents differently from how they
	// were written.
	Generation(ctx context.Context, c event.Collection) (string, error)
}

// Query is a search for words.
type Query struct {
	Text       string
	Field      string           // with dots between the names of nested fields; empty for all fields
	Collection event.Collection // empty for all collections
	Limit      int              // the largest number of documents to return; 0 or less returns none
	// Prefix says that the last word of Text may be the beginning of a word; see [Query.Parts].
	Prefix bool
}

// Parts splits the text of a query into the whole words and the beginning of a word. beginning is
// the last word if Prefix is set and the text does not end with white space. Words that consist of
// punctuation are removed, because engines treat some of them as operators. Every sink uses Parts,
// so that all engines find the same documents.
func (q Query) Parts() (whole, beginning string) {
	whole = q.Text
	if last, _ := utf8.DecodeLastRuneInString(whole); q.Prefix && !unicode.IsSpace(last) {
		whole = strings.TrimRightFunc(whole, notInWord)
		start := 0
		if at := strings.LastIndexFunc(whole, notInWord); at >= 0 {
			_, size := utf8.DecodeRuneInString(whole[at:])
			start = at + size
		}
		whole, beginning = whole[:start], whole[start:]
	}
	words := slices.DeleteFunc(strings.Fields(whole), func(w string) bool {
		return !strings.ContainsFunc(w, func(r rune) bool { return r > unicode.MaxASCII || !notInWord(r) })
	})
	return strings.Join(words, " "), beginning
}

func notInWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }

// Stored is a document in the sink, without the member `_lull`. The fields except Document come
// from that member.
type Stored struct {
	Doc      event.DocID
	Version  string
	Key      string // the printed form of the order key
	Fence    event.Fence
	Indexed  time.Time
	Document []byte // JSON, with the same digits in every number as written
}
