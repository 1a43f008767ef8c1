// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"os"
	"strings"
)

//go:embed pages/*.html
var pageFiles embed.FS

var pages = template.Must(template.ParseFS(pageFiles, "pages/*.html"))

// Bounds of what an editor may write. SQS takes at most 1 MiB.
const (
	maxTitle = 200
	maxText  = 200_000
)

// site serves the editor's pages and the public page.
//
//	GET  /            the articles
//	GET  /edit?id=    one article to change, or a new one
//	POST /save        id, title, text
//	POST /delete      id
//	GET  /search?q=   the public page
type site struct {
	db    *store
	relay *relay
	lull  *client
}

func newSite(db *store, r *relay, lull *client) http.Handler {
	s := &site{db: db, relay: r, lull: lull}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page(s.list))
	mux.HandleFunc("GET /edit", page(s.edit))
	mux.HandleFunc("GET /search", page(s.search))
	mux.HandleFunc("POST /save", page(s.save))
	mux.HandleFunc("POST /delete", page(s.remove))
	// A form on another site must not write here.
	return http.NewCrossOriginProtection().Handler(mux)
}

// problem is an error that the browser may see.
type problem struct {
	status int
	text   string
}

func (p problem) Error() string { return p.text }

// page shows what a handler returns: the name of a page and its data, or a path to go to.
func page(h func(*http.Request) (string, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 4<<20) // a form may need three bytes for one
		name, data, err := h(r)
		var p problem
		switch {
		case errors.As(err, &p):
			http.Error(w, p.text, p.status)
		case err != nil:
			fmt.Fprintf(os.Stderr, "cms: %s: %v\n", r.URL.Path, err)
			http.Error(w, "the database does not answer: see the terminal", http.StatusInternalServerError)
		case strings.HasPrefix(name, "/"):
			http.Redirect(w, r, name, http.StatusSeeOther)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if err := pages.ExecuteTemplate(w, name, data); err != nil {
				fmt.Fprintf(os.Stderr, "cms: %s: %v\n", name, err)
			}
		}
	}
}

func (s *site) list(r *http.Request) (string, any, error) {
	articles, err := s.db.articles(r.Context())
	if err != nil {
		return "", nil, err
	}
	waiting, trouble := s.relay.state(r.Context())
	return "list.html", map[string]any{
		"Articles": articles, "Waiting": waiting, "Trouble": trouble, "Console": s.console,
	}, nil
}

// console returns the address of an article in lull's console.
func (s *site) console(id string) string {
	return s.lull.url + "/#/documents/" + url.PathEscape("articles#"+id)
}

func (s *site) edit(r *http.Request) (string, any, error) {
	a := article{ID: r.FormValue("id")}
	if a.ID == "" {
		a.ID = strings.ToLower(rand.Text())[:10]
		return "edit.html", a, nil
	}
	a, ok, err := s.db.article(r.Context(), a.ID)
	if err == nil && !ok {
		err = problem{http.StatusNotFound, "id: this article does not exist"}
	}
	return "edit.html", a, err
}

func (s *site) save(r *http.Request) (string, any, error) {
	a := article{ID: r.FormValue("id"), Title: strings.TrimSpace(r.FormValue("title")), Text: r.FormValue("text")}
	switch {
	case !goodID(a.ID):
		return "", nil, problem{http.StatusBadRequest, "id: use 1 to 64 of a to z, 0 to 9 and -"}
	case a.Title == "" || len(a.Title) > maxTitle:
		return "", nil, problem{http.StatusBadRequest, fmt.Sprintf("title: write 1 to %d bytes", maxTitle)}
	case len(a.Text) > maxText:
		return "", nil, problem{http.StatusBadRequest, fmt.Sprintf("text: write at most %d bytes", maxText)}
	}
	return s.changed(s.db.save(r.Context(), a))
}

func (s *site) remove(r *http.Request) (string, any, error) {
	if !goodID(r.FormValue("id")) {
		return "", nil, problem{http.StatusBadRequest, "id: use 1 to 64 of a to z, 0 to 9 and -"}
	}
	return s.changed(s.db.remove(r.Context(), r.FormValue("id")))
}

func (s *site) changed(err error) (string, any, error) {
	if err == nil {
		s.relay.saved()
	}
	return "/", nil, err
}

func goodID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (s *site) search(r *http.Request) (string, any, error) {
	words := r.FormValue("q")
	if len(words) > maxTitle {
		words = strings.ToValidUTF8(words[:maxTitle], "")
	}
	hits, err := s.lull.search(r.Context(), words)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cms: search: %v\n", err)
	}
	return "search.html", map[string]any{"Words": words, "Hits": hits, "Away": err != nil}, nil
}
