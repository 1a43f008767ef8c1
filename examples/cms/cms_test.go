// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is the lull that the tests run.
var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "cms")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(folder, "lull")
	build := exec.Command("go", "build", "-o", program, "./cmd/lull")
	build.Dir, build.Stderr = "../..", os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// startLull runs a lull dev with the example's settings at an address, until the test ends or stop
// is called.
func startLull(t *testing.T, at, data string) (stop func()) {
	t.Helper()
	cmd := exec.Command(program, "dev", "--local", "--config", "lull.yaml", "--data", data, "--listen", at, "--speed", "10")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-done
		done <- nil // for a second call
	}
	t.Cleanup(stop)
	return stop
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// browser is a user of the example's pages.
type browser struct {
	*testing.T
	url string
}

// open starts the site over a database, as main does.
func open(t *testing.T, file, lull string) browser {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	db, err := openStore(ctx, file)
	if err != nil {
		t.Fatal(err)
	}
	api := &client{url: "http://" + lull, http: http.DefaultClient}
	r := newRelay(db, api)
	ended := make(chan struct{})
	go func() { defer close(ended); r.run(ctx) }()
	s := httptest.NewServer(newSite(db, r, api))
	t.Cleanup(func() { s.Close(); end(); <-ended; _ = db.close() })
	return browser{t, s.URL}
}

func (b browser) post(path string, form url.Values) int {
	b.Helper()
	r, err := http.PostForm(b.url+path, form)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode
}

func (b browser) save(id, title string) {
	b.Helper()
	if status := b.post("/save", url.Values{"id": {id}, "title": {title}, "text": {"A text about teapots."}}); status != http.StatusOK {
		b.Fatalf("saving %q: status %d", title, status)
	}
}

func (b browser) get(path string) string {
	b.Helper()
	r, err := http.Get(b.url + path)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		b.Fatalf("%s: status %d, %v", path, r.StatusCode, err)
	}
	return html.UnescapeString(string(body))
}

// until waits until a page satisfies a condition. It gives up shortly before go test does.
func (b browser) until(path, what string, ok func(page string) bool) {
	b.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var late <-chan time.Time
	if end, bounded := b.Deadline(); bounded {
		late = time.After(time.Until(end) - 10*time.Second)
	}
	for page := ""; ; {
		if page = b.get(path); ok(page) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			b.Fatalf("%s: %s never held; the page is\n%s", path, what, page)
		}
	}
}

// A taken port ends the program at once, and the error names the flag.
func TestATakenPortNamesTheFlag(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = run(t.Context(), []string{"-listen", taken.Addr().String(), "-database", filepath.Join(t.TempDir(), "cms.db")})
	if err == nil || !strings.Contains(err.Error(), "choose another address, such as -listen 127.0.0.1:8081") {
		t.Errorf("got %v, want the flag to change", err)
	}
}

func TestASavedArticleIsFoundUntilItIsDeleted(t *testing.T) {
	lull := freeAddress(t)
	startLull(t, lull, t.TempDir())
	b := open(t, filepath.Join(t.TempDir(), "cms.db"), lull)
	for n := 1; n <= 5; n++ { // a burst: only the last version matters
		b.save("pot", fmt.Sprintf("Blue <teapot> %d", n))
	}
	b.save("cup", "Red cup")
	b.until("/search?q=teapots", "the newest articles are found", func(page string) bool {
		return strings.Contains(page, "Blue <teapot> 5") && strings.Contains(page, "Red cup") && !strings.Contains(page, "<teapot> 4")
	})
	b.until("/", "the outbox is empty", func(page string) bool { return !strings.Contains(page, "not sent to lull yet") })
	b.post("/delete", url.Values{"id": {"pot"}})
	b.until("/search?q=teapots", "the deleted article is gone", func(page string) bool {
		return !strings.Contains(page, "Blue <teapot>") && strings.Contains(page, "Red cup")
	})
	if page := b.get("/"); strings.Contains(page, "Blue <teapot>") || !strings.Contains(page, "Red cup") {
		t.Errorf("the list does not show the articles that are left:\n%s", page)
	}
	b.save("pot", "The pot is back")
	b.until("/search?q=back", "an article that was made again is found", func(page string) bool {
		return strings.Contains(page, "The pot is back")
	})
}

func TestNothingIsLostWhileLullOrTheCMSIsAway(t *testing.T) {
	lull, data, file := freeAddress(t), t.TempDir(), filepath.Join(t.TempDir(), "cms.db")
	t.Run("lull is away", func(t *testing.T) {
		b := open(t, file, lull)
		b.save("a", "Saved while lull was away")
		b.until("/", "the editor sees that the article waits", func(page string) bool {
			return strings.Contains(page, "not sent to lull yet: 1") && strings.Contains(page, "nothing is lost")
		})
		if page := b.get("/search?q=lull"); !strings.Contains(page, "The search is away") {
			t.Errorf("the public page does not say that the search is away:\n%s", page)
		}
	})
	b := open(t, file, lull) // another program, with the same database
	startLull(t, lull, data)
	b.until("/search?q=away", "the article is found", func(page string) bool {
		return strings.Contains(page, "Saved while lull was away")
	})
}

func TestTheOutboxHoldsEachChangeInOrder(t *testing.T) {
	ctx := t.Context()
	s, err := openStore(ctx, filepath.Join(t.TempDir(), "cms.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, err := range []error{
		s.save(ctx, article{ID: "a", Title: "one"}), s.remove(ctx, "a"), s.save(ctx, article{ID: "a", Title: "two"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	waiting, err := s.outbox(ctx, 10)
	if err != nil || len(waiting) != 3 {
		t.Fatalf("%d events wait (%v), want 3", len(waiting), err)
	}
	for i, want := range []string{
		`"type":"doc.changed","subject":"a","sequence":"1","data":{"title":"one"`,
		`"type":"doc.deleted","subject":"a","sequence":"2"}`,
		`"type":"doc.changed","subject":"a","sequence":"3","data":{"title":"two"`,
	} {
		if !strings.Contains(waiting[i].event, want) {
			t.Errorf("event %d is %s, want %s", i, waiting[i].event, want)
		}
		if err := s.accepted(ctx, waiting[i].version); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.save(ctx, article{ID: "a", Title: "three"}); err != nil {
		t.Fatal(err)
	}
	if waiting, err = s.outbox(ctx, 10); err != nil || len(waiting) != 1 || waiting[0].version != 4 {
		t.Errorf("%+v wait (%v), want version 4 alone: no version is used twice", waiting, err)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "cms.db"), freeAddress(t))
	for name, form := range map[string]url.Values{
		"no id":              {"title": {"t"}},
		"an id with a slash": {"id": {"a/b"}, "title": {"t"}},
		"a long id":          {"id": {strings.Repeat("a", 65)}, "title": {"t"}},
		"no title":           {"id": {"a"}, "title": {" "}},
		"a long title":       {"id": {"a"}, "title": {strings.Repeat("t", maxTitle+1)}},
		"a long text":        {"id": {"a"}, "title": {"t"}, "text": {strings.Repeat("t", maxText+1)}},
	} {
		if status := b.post("/save", form); status != http.StatusBadRequest {
			t.Errorf("%s: status %d, want 400", name, status)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/save", strings.NewReader("id=a&title=t"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: status %d, want 403", answer.StatusCode)
	}
	if page := b.get("/"); !strings.Contains(page, "There is no article yet") {
		t.Errorf("a refused article was saved:\n%s", page)
	}
}
