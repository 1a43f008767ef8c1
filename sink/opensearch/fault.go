// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Error says that a request other than a write failed. An Error quotes no text of the answer: Class
// is the engine's type of the error.
type Error = exchange.Error

var hints = map[int]string{
	http.StatusUnauthorized:          "the credentials are missing or wrong: check the sink's auth",
	http.StatusForbidden:             "the credentials are not allowed to do this: check the role and the access policy",
	http.StatusNotFound:              "the path or the index does not exist: check the url and the index",
	http.StatusTooManyRequests:       "the cluster is overloaded or its disk is full",
	http.StatusServiceUnavailable:    "the cluster is not ready",
	http.StatusRequestEntityTooLarge: "the request is too large: lower bulkBytes",
}

// fault is OpenSearch's description of an error. Reason quotes content of documents, so it never
// leaves this package.
type fault struct {
	Type     string `json:"type"`
	Reason   string `json:"reason"`
	CausedBy *fault `json:"caused_by"`
}

// faultOf returns the error in an answer, or the zero fault if there is none.
func faultOf(a exchange.Answer) fault {
	f, _ := parseFault(a.Body)
	return f
}

// parseFault reads the body of an answer that reports one error for the whole request. parseFault
// returns false if the body is not an error of OpenSearch.
func parseFault(body []byte) (fault, bool) {
	var whole struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &whole) != nil || len(whole.Error) == 0 {
		return fault{}, false
	}
	var f fault
	err := json.Unmarshal(whole.Error, &f)
	return f, err == nil && f.Type != ""
}

var plainType = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)

// class returns the type of the error, or "" if the type does not look like a type of OpenSearch.
func (f fault) class() string {
	if plainType.MatchString(f.Type) {
		return f.Type
	}
	return ""
}

// fieldIn finds the name of a field in the error texts of OpenSearch 2.x. lull prints the name only
// if it looks like a name.
var fieldIn = []*regexp.Regexp{
	regexp.MustCompile(`\bfield \[([^\[\]]*)\]`), // failed to parse field [views] of type [long]
	// dynamic introduction of [color] within [_doc] is not allowed
	regexp.MustCompile(`\bintroduction of \[([^\[\]]*)\]`),
	// mapper [views] cannot be changed from type [long] to [text]
	regexp.MustCompile(`\bmapper \[([^\[\]]*)\]`),
	regexp.MustCompile(`\bin field="([^"]*)"`),              // immense term in field="title"
	regexp.MustCompile(`\bobject mapping for \[([^\[\]]*)`), // object mapping for [details] tried to parse
}

// field returns the name of the field to blame, or "" if it is not known.
func (f fault) field() string {
	for c := &f; c != nil; c = c.CausedBy {
		for _, re := range fieldIn {
			if m := re.FindStringSubmatch(c.Reason); m != nil {
				return m[1]
			}
		}
	}
	return ""
}

// reason returns the parts of the error that may be printed.
func (f fault) reason() string {
	return sink.Reason(cmp.Or(f.class(), "unclassified"), f.field())
}
