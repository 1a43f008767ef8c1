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
	Fence    event.Fence     // the external version, of sinks that have versions
	Key      event.OrderKey  // for _lull.order_key
	Version  string          // the upstream's text, for _lull.version
	At       time.Time       // for _lull.indexed_at
	Document []byte          // JSON object; nil for a delete
	// Present says that the sink should hold the document: its row knows a put that was committed.
	// A sink that finds no index to delete it from answers Configuration, not Applied.
	Present bool
}

// OutcomeKind says what became of one Op.
type OutcomeKind byte

// The outcome rows of design section 8.
const (
	Applied   OutcomeKind = iota // written, or a delete of a missing document: COMMIT
	Throttled                    // refused before anything was applied: RELEASE without a refusal
	Unknown                      // time-out, 5xx, reset, count mismatch: lease and claimed stay
	// 409: a greater fence is there; under a live lease never a success: alarm SinkNewer, outcome
	// unknown
	Newer
	Refused  // this item failed for an unclassified reason and was not applied: RELEASE with a refusal
	Rejected // for good: mapping error, too large: dead letter, REJECT
	// Configuration: nothing was applied, no document is at fault and waiting alone cures nothing,
	// such as credentials or a missing index: RELEASE without a refusal, alarm
	Configuration
)

// OutcomeKinds are all kinds, in the order of their constants.
func OutcomeKinds() []OutcomeKind {
	return []OutcomeKind{Applied, Throttled, Unknown, Newer, Refused, Rejected, Configuration}
}

// String is the word used in logs and metrics.
func (k OutcomeKind) String() string {
	return [...]string{"applied", "throttled", "unknown", "newer", "refused", "rejected", "configuration"}[k]
}

// Outcome is the answer for one Op.
type Outcome struct {
	Kind       OutcomeKind
	RetryAfter time.Duration // Throttled: what the sink asked for, 0 for nothing
	Status     int           // the sink's status code, 0 for none
	// The answer says nothing about the sink as a whole: it is about this item, one index is in
	// trouble, or there was no time to send the op. Others may be written.
	Apart  bool
	Reason string // class and field, never content: "mapper_parsing_exception: field title"
}

// Sink writes documents. It is safe for concurrent use.
type Sink interface {
	// Write sends the ops in one bulk request, or several where the sink bounds a request's size. It
	// returns exactly one outcome per op, in order. It never retries: a second request under one claim
	// may only follow a definite refusal. When ctx ends, ops that may have reached the sink and have
	// no answer are Unknown; those that were certainly never sent are Throttled and Apart. Ops name
	// distinct documents.
	Write(ctx context.Context, ops []Op) []Outcome
	// Ping asks whether the sink would work, without touching a document. An error that is ErrDenied
	// says that the sink is there and does not let us ask. It may take writes all the same. After any
	// other error the sink cannot be reached, or is not ready.
	Ping(ctx context.Context) error
}

// ErrDenied is the error of a sink that is there and denies what was asked: the credentials may not
// do this. Match it with errors.Is. It says nothing about any other request.
var ErrDenied = errors.New("the sink denies access")

// Reader reads a sink back, for commands and tests.
type Reader interface {
	// Get returns the document, or false.
	Get(ctx context.Context, doc event.DocID) (Stored, bool, error)
	// All calls f for each document, sorted by collection and id, until it returns an error. A
	// document whose mark cannot be read may have its Doc only.
	All(ctx context.Context, f func(Stored) error) error
	// Search returns the documents that contain every word of the query's text, best first. What a
	// word is, and which forms of it count as the same, is each engine's own. With Prefix the last word
	// is also found where words begin with it, in whatever case.
	Search(ctx context.Context, q Query) ([]Stored, error)
}

// Sampler is a sink with versions that can name a document. Before documents that are all new die
// of a refusal, one that is named is read back and written once more, with an older fence. So a
// sink with versions refuses what is in a document before it compares fences.
type Sampler interface {
	// Sample names a document of the collection that lull wrote, any one, or returns false where there
	// is none. It may be gone by now.
	Sample(ctx context.Context, c event.Collection) (event.DocID, bool, error)
}

// Marker is a Reader that reads the marks of many documents at once. A Reader may be one, so that
// comparing a collection with its rows takes one request for a hundred documents.
type Marker interface {
	// Marks returns what lull wrote beside each document, as it is now and without its content, in
	// the order asked. A document that is missing, or is not lull's, is the zero Stored. One whose
	// mark cannot be read has its Doc only.
	Marks(ctx context.Context, docs []event.DocID) ([]Stored, error)
}

// Auditor is a Reader that can be compared with a source document by document. A Reader may be one.
// Then `lull verify` goes on where it stopped, and sees what lull did not write. A document that
// lull did not write, or whose mark cannot be read, has its Doc and Document only.
type Auditor interface {
	// Range calls f for each document of a collection whose id is greater than after, by id, until f
	// returns an error. An empty after is before the first one.
	Range(ctx context.Context, c event.Collection, after string, f func(Stored) error) error
	// Documents returns documents as they are now, in the order asked. One that is missing is the zero
	// Stored.
	Documents(ctx context.Context, docs []event.DocID) ([]Stored, error)
}

// Generator is a sink that tells its indices apart from others of the same name. Only such a sink
// may have unchanged: keep. The row of a document says which generation has its bytes.
type Generator interface {
	// Generation names the index that holds the collection's documents now: never the same text for
	// an index that was made anew under its name, and always the same while it stays. An empty text
	// says that nothing can be recognised there. Examples are an alias of several indices, and an
	// index that does not give documents back as they were written.
	Generation(ctx context.Context, c event.Collection) (string, error)
}

// Query is a plain search.
type Query struct {
	Text       string
	Field      string           // with dots between the names of nested ones; empty for all fields
	Collection event.Collection // empty for all collections
	Limit      int              // how many documents at most; 0 or less finds none
	// Prefix says that the last word may be the beginning of a word; see [Query.Parts].
	Prefix bool
}

// Parts takes the text of a query apart: what holds whole words, and the last word where it may be
// the beginning of one. A text that ends with white space holds whole words only. What is nothing
// but punctuation is left out: engines take some of it for operators. Every engine uses Parts, so
// that all of them agree.
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

// Stored is a document as the sink holds it, without `_lull`.
type Stored struct {
	Doc      event.DocID
	Version  string
	Key      string // printed order key
	Fence    event.Fence
	Indexed  time.Time
	Document []byte // JSON, numbers digit for digit
}
