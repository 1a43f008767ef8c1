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
	// Ping asks whether the sink works, without touching a document. ErrDenied means that the sink
	// answers but does not allow the question. Writes may still succeed. After any other error the
	// sink cannot be reached, or is not ready. ErrAway means that the sink itself says so.
	Ping(ctx context.Context) error
}

// ErrDenied is the error of a sink that answers, but denies the request: the credentials do not
// allow it. Match it with errors.Is. It says nothing about any other request.
var ErrDenied = errors.New("the sink denies access")

// ErrAway is the error of a sink that answers, but cannot serve requests at the moment: it is
// starting, overloaded or under maintenance. The same request may succeed later. Match it with
// errors.Is.
var ErrAway = errors.New("the sink is unavailable for now")

// Reader reads a sink back, for commands and tests.
type Reader interface {
	// Get returns the document, or false.
	Get(ctx context.Context, doc event.DocID) (Stored, bool, error)
	// All calls f for each document, sorted by collection and id, until it returns an error. If a
	// document's mark cannot be read, it may have only its Doc.
	All(ctx context.Context, f func(Stored) error) error
	// Search returns the documents that contain every word of the query's text, best first. Each
	// engine decides what a word is, and which of its forms are equal. With Prefix, the last word
	// may be the beginning of a word, in any case.
	Search(ctx context.Context, q Query) ([]Stored, error)
}

// Sampler is a sink with versions that can name an existing document. If the sink refuses documents
// that are all new, lull tests it before they become dead letters. It reads the named document back
// and writes it again with an older fence. For that test, a sink with versions must check a
// document's contents before it compares fences.
type Sampler interface {
	// Sample names any document of the collection that lull wrote, or returns false if there is
	// none. The document may have been deleted since.
	Sample(ctx context.Context, c event.Collection) (event.DocID, bool, error)
}

// Marker is a Reader that reads the marks of many documents at once. It is optional. With it,
// comparing a collection with its rows takes one request for a hundred documents.
type Marker interface {
	// Marks returns the current mark of each document, without its content, in the order asked. The
	// zero Stored means that the document is missing or is not lull's. If a mark cannot be read, it
	// has only its Doc.
	Marks(ctx context.Context, docs []event.DocID) ([]Stored, error)
}

// Auditor is a Reader that can be compared with a source document by document. It is optional. With
// it, `lull index check` continues where it stopped, and sees documents that lull did not write.
// Such a document, or one whose mark cannot be read, has only its Doc and Document.
type Auditor interface {
	// Range calls f for each document of a collection whose id is greater than after, by id, until
	// f returns an error. An empty after means all documents.
	Range(ctx context.Context, c event.Collection, after string, f func(Stored) error) error
	// Documents returns the current documents, in the order asked. The zero Stored means that a
	// document is missing.
	Documents(ctx context.Context, docs []event.DocID) ([]Stored, error)
}

// Omitter is a Reader whose engine may store a document without making all its values searchable.
// An example is a text if the mapping requires a number.
type Omitter interface {
	// Omitted counts such documents of a collection, only among those that lull wrote.
	Omitted(ctx context.Context, c event.Collection) (Omitted, error)
}

// Omitted are documents with values that searches do not find.
type Omitted struct {
	Documents int64
	Some      []event.DocID // MaxOmitted at most
	Fields    []string      // at most MaxOmitted of their fields, only plain names: see [PlainName]
}

// MaxOmitted is how many documents and fields Omitted names.
const MaxOmitted = 10

// Generator is a sink that tells its indices apart from others of the same name. Only such a sink
// may have unchanged: keep. The row of a document says which generation has its bytes.
type Generator interface {
	// Generation names the index that now holds the collection's documents. An index keeps its
	// text, and an index that was created again under the same name gets another. An empty text
	// means that unchanged documents cannot be recognised. Examples are an alias of several
	// indices, and an index that returns documents differently from how they were written.
	Generation(ctx context.Context, c event.Collection) (string, error)
}

// Query is a plain search.
type Query struct {
	Text       string
	Field      string           // with dots between the names of nested fields; empty for all fields
	Collection event.Collection // empty for all collections
	Limit      int              // how many documents at most; 0 or less finds none
	// Prefix says that the last word may be the beginning of a word; see [Query.Parts].
	Prefix bool
}

// Parts splits the text of a query: the whole words, and the last word if it may be the beginning
// of one. A text that ends with white space has only whole words. Words of punctuation alone are
// removed, because engines treat some of them as operators. Every engine uses Parts, so that all of
// them agree.
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
