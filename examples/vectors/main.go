// SPDX-License-Identifier: Apache-2.0

// Vectors is an example: an enricher that puts a vector into each document, and a search that uses
// the vectors. See README.md in the same folder.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("vectors", flag.ContinueOnError)
	at := flags.String("enricher", "127.0.0.1:8090", "the address of the enricher, as host:port")
	index := flags.String("index", "http://127.0.0.1:9200/lull-content", "the index in OpenSearch")
	knn := flags.Bool("knn", false, "search with the k-NN plugin, and do not compare every document in this program")
	split := flags.Bool("passages", false, "make and find a vector for each passage of a document")
	engine := flags.String("engine", "", "with -passages, search with the vectors of this engine: elasticsearch or opensearch")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.Arg(0) == "serve" && flags.NArg() == 1:
		fmt.Fprintf(out, "a stub of an embedding: words hashed into %d numbers, on http://%s/\n", dimensions, *at)
		handler := enrichHandler
		if *split {
			handler = passageHandler
		}
		s := &http.Server{Addr: *at, Handler: http.HandlerFunc(handler), ReadTimeout: 10 * time.Second}
		return s.ListenAndServe()
	case flags.Arg(0) == "search" && flags.NArg() == 2 && *split:
		found, err := searchPassages("http://"+*at+"/", *index, flags.Arg(1), *engine)
		for _, f := range found {
			fmt.Fprintf(out, "%.3f  %s: %s\n", f.score, f.title, f.passage)
		}
		return err
	case flags.Arg(0) == "search" && flags.NArg() == 2:
		found, err := search("http://"+*at+"/", *index, flags.Arg(1), *knn)
		for _, f := range found {
			fmt.Fprintf(out, "%.3f  %s\n", f.score, f.title)
		}
		return err
	}
	return fmt.Errorf("usage: vectors [flags] serve, or vectors [flags] search TEXT")
}

// Requests and answers in the format of docs/enrich.md.
type (
	document struct {
		ID     string            `json:"id"`
		Inputs map[string]string `json:"inputs,omitempty"`
		Fields *fields           `json:"fields,omitempty"`
		Error  *failure          `json:"error,omitempty"`
	}
	fields struct {
		Vector   []float64  `json:"vector,omitempty"`
		Passages *[]passage `json:"passages,omitempty"`
	}
	failure struct {
		Kind   string `json:"kind"`
		Reason string `json:"reason"`
	}
	documents struct {
		Documents []document `json:"documents"`
	}
)

// maxRequest is the largest request that is read, in bytes. lull sends smaller requests.
const maxRequest = 16 << 20

// enrichHandler answers a request with a vector for each document, or an error. A document without
// words can never have a vector, so its error is permanent.
func enrichHandler(w http.ResponseWriter, r *http.Request) {
	answerWith(w, r, func(d document) (*fields, *failure) {
		if v := embed(d.Inputs); v != nil {
			return &fields{Vector: v}, nil
		}
		return nil, &failure{"rejected", "its inputs have no words"}
	})
}

// answerWith answers a request with what each document gets.
func answerWith(w http.ResponseWriter, r *http.Request, each func(document) (*fields, *failure)) {
	var asked, answer documents
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&asked); err != nil {
		http.Error(w, "not a request of lull's", http.StatusBadRequest)
		return
	}
	for _, d := range asked.Documents {
		out := document{ID: d.ID}
		out.Fields, out.Error = each(d)
		answer.Documents = append(answer.Documents, out)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // if the answer is lost, lull asks again
}

type hit struct {
	title   string
	passage string // the passage that is nearest, with -passages
	score   float64
}

// most is how many documents a search returns. compared is how many documents it compares without
// the k-NN plugin.
const (
	most     = 5
	compared = 10_000
)

// search gets the vector of a text from the enricher, and then finds the documents in the index
// whose vectors are nearest to it.
func search(enricher, index, text string, knn bool) ([]hit, error) {
	var made documents
	err := post(enricher, documents{[]document{{ID: "query", Inputs: map[string]string{"/title": text}}}}, &made)
	if err != nil {
		return nil, err
	}
	if len(made.Documents) != 1 || made.Documents[0].Fields == nil {
		return nil, fmt.Errorf("the enricher makes no vector of %q", text)
	}
	vector := made.Documents[0].Fields.Vector
	query := map[string]any{"size": compared, "query": map[string]any{"exists": map[string]any{"field": "vector"}}}
	if knn {
		query = map[string]any{"size": most, "query": map[string]any{"knn": map[string]any{
			"vector": map[string]any{"vector": vector, "k": most},
		}}}
	}
	var answer struct {
		Hits struct {
			Hits []struct {
				Source struct {
					Title  string    `json:"title"`
					Vector []float64 `json:"vector"`
				} `json:"_source"`
			} `json:"hits"`
		} `json:"hits"`
	}
	if err := post(index+"/_search", query, &answer); err != nil {
		return nil, err
	}
	var found []hit
	for _, h := range answer.Hits.Hits {
		found = append(found, hit{title: h.Source.Title, score: cosine(vector, h.Source.Vector)})
	}
	slices.SortStableFunc(found, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	return found[:min(len(found), most)], nil
}

var client = http.Client{Timeout: 30 * time.Second}

func post(url string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	res, err := client.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(answer)
}
